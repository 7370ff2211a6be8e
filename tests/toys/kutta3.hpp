// Kutta's method of third order (Hairer, Norsett and Wanner II.1): its tableau and its row, as they stand in methods.hpp.
// tableau
inline constexpr double kutta3_a[] = {0, 0, 0, 0.5, 0, 0, -1, 2, 0};
inline constexpr double kutta3_b[] = {1.0 / 6, 2.0 / 3, 1.0 / 6};
inline constexpr double kutta3_c[] = {0, 0.5, 1};
inline constexpr Tableau kutta3 = {3, kutta3_a, kutta3_b, kutta3_c, nullptr, nullptr};
// clang-format off: a row of a macro
// row
  X(kutta3, runge_kutta, 3, 3, 2.51, &tableaus::kutta3, false, true, false)              \
// end
// clang-format on
