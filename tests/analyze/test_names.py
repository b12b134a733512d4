import pytest

from wavesim.analyze.names import short_name

ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (ELEMENTWISE, "vectorized_elementwise_kernel<CUDAFunctor_add>"),
        ("void ns::(anonymous namespace)::norm<float, 4>(int, float*)", "norm"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("my_kernel(float*, int)", "my_kernel"),
        ("", ""),
    ],
)
def test_a_name_keeps_what_tells_kernels_apart(name, short):
    assert short_name(name) == short


def test_a_short_name_is_never_longer_than_asked():
    for width in (8, 20, 48):
        assert len(short_name(ELEMENTWISE, width)) <= width
        assert len(short_name("nvjet_" + "x" * 500, width)) <= width
