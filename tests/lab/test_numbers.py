"""Every number of the design comes out of the code that prices and explains."""

from __future__ import annotations

from pytest import approx, fixture

from ridgepole.lab.numbers import Row, table


@fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.name: row for row in table()}


def test_the_ridge_points_of_an_h100_are_295_and_20(rows: dict[str, Row]) -> None:
    values = rows["ridge point"].values
    assert round(values["bf16_tensor"]) == 295
    assert values["fp32_vector"] == approx(20)


def test_doubling_a_matrix_takes_eighty_times_longer_to_move_than_to_compute(rows: dict[str, Row]) -> None:
    values = rows["y = x*2, 4096x4096 bf16"].values
    assert values["elements"] == 16_777_216
    assert values["read"] == values["written"] == 33_554_432
    assert values["bytes"] == 67_108_864
    assert values["memory_seconds"] == approx(20.0e-6, rel=0.005)
    assert values["compute_seconds"] == approx(0.25e-6, rel=0.005)
    assert values["ratio"] == approx(80, rel=0.01)
    assert values["two_kernels"] == approx(40.1e-6, rel=0.005)
    assert values["fused"] == approx(20.0e-6, rel=0.005)


def test_its_grid_is_sixty_two_full_waves_and_a_bit(rows: dict[str, Row]) -> None:
    values = rows["its grid at 256 threads"].values
    assert (values["blocks"], values["blocks_per_sm"], values["wave"]) == (65_536, 8, 1_056)
    assert values["waves"] == approx(62.06, abs=0.005)
    assert (values["launches"], values["full"]) == (63, 62)


def test_a_full_sm_has_32_registers_a_thread_and_128_leave_16_warps(rows: dict[str, Row]) -> None:
    values = rows["occupancy"].values
    assert values["registers_a_thread"] == 32
    assert values["warps_at_128"] == 16


def test_the_capacity_ladder_spans_five_orders_of_magnitude(rows: dict[str, Row]) -> None:
    values = rows["capacity ladder"].values
    assert values["registers_bytes"] == 256 * 1024
    assert values["shared_bytes"] == 228 * 1024
    assert values["l2_bytes"] == 50e6
    assert values["dram_bytes"] == 80e9
    assert values["registers_cycles"] == approx(1)
    assert 20 <= values["shared_cycles"] <= 32
    assert 200 <= values["l2_cycles"] <= 280
    assert values["dram_cycles"] >= 400
    assert values["dram_over_registers"] == approx(312_500)
    assert values["all_registers_bytes"] == approx(34e6, rel=0.02)
    assert values["dram_over_all_registers"] == approx(2_400, rel=0.05)


def test_a_scattered_warp_moves_eight_times_its_bytes(rows: dict[str, Row]) -> None:
    values = rows["coalescing"].values
    assert (values["sectors"], values["bytes"]) == (4, 128)
    assert (values["scattered"], values["scattered_bytes"]) == (32, 1_024)


def test_intensities_of_the_four_textbook_kernels(rows: dict[str, Row]) -> None:
    values = rows["arithmetic intensity"].values
    assert values["add"] == approx(1 / 12)
    assert values["mv"] == approx(0.50, abs=0.005)
    assert values["matmul_fp32_over_n"] == approx(1 / 6)
    assert values["matmul_bf16_over_n"] == approx(1 / 3)


def test_a_tile_reads_less_the_larger_it_is(rows: dict[str, Row]) -> None:
    values = rows["tile T x T, fp32"].values
    assert {t: values[t] for t in ("1", "16", "32", "64", "128")} == {"1": 0.25, "16": 4, "32": 8, "64": 16, "128": 32}
    assert values["reads_16_over_1"] == 1 / 16


def test_waves_of_128_tiles_on_132_sms(rows: dict[str, Row]) -> None:
    expected = {
        1024: (64, 1, 0.48, 1.0, 0.48),
        1408: (121, 1, 0.92, 1.0, 0.92),
        1536: (144, 2, 0.55, 1.0, 0.55),
        4096: (1024, 8, 0.97, 1.0, 0.97),
        4097: (1089, 9, 0.92, 0.94, 0.86),
        4224: (1089, 9, 0.92, 1.0, 0.92),
    }
    for n, (tiles, waves, sm, useful, overall) in expected.items():
        values = rows[f"waves, 128x128 tiles, n={n}"].values
        assert (values["tiles"], values["waves"]) == (tiles, waves)
        assert values["sm"] == approx(sm, abs=0.005)
        assert values["useful"] == approx(useful, abs=0.005)
        assert values["overall"] == approx(overall, abs=0.005)


def test_three_to_five_pipeline_slices_of_32_kb_fit(rows: dict[str, Row]) -> None:
    values = rows["pipeline slice"].values
    assert values["bytes"] == 32 * 1024
    assert values["fit_two_blocks"] == 3
    assert values["fit"] >= 5


def test_a_third_of_a_textbook_decode_step_is_launches(rows: dict[str, Row]) -> None:
    values = rows["Llama 3 8B decode"].values
    assert values["launches"] == 480
    assert values["launch_seconds"] == approx(2.4e-3)
    assert values["travel_seconds"] == approx(4.8e-3, rel=0.01)
    assert values["overhead"] == approx(0.33, abs=0.005)


def test_the_gpt2_vocabulary_pads_to_50304(rows: dict[str, Row]) -> None:
    assert rows["vocabulary"].values["padded"] == 50_304


def test_the_laptop_has_a_ridge_of_31(rows: dict[str, Row]) -> None:
    values = rows["Apple M4, measured"].values
    assert round(values["ridge"]) == 31
    assert values["spec"] == 120e9
