/* One function for CasADi. Columns of a matrix follow each other; patterns are rows, columns, where columns start, rows of entries. */
static const long long @f@_patterns[] = {@patterns@};
static const int @f@_pattern[] = {@pattern_starts@}, @f@_place[] = {@places@};
long long @f@_n_in(void) { return @n_in@; }
long long @f@_n_out(void) { return @n_out@; }
const char *@f@_name_in(long long i) {
  static const char *const names[] = {@names_in@};
  return names[i];
}
const char *@f@_name_out(long long i) {
  static const char *const names[] = {@names_out@};
  return names[i];
}
const long long *@f@_sparsity_in(long long i) { return @f@_patterns + @f@_pattern[i]; }
const long long *@f@_sparsity_out(long long i) { return @f@_patterns + @f@_pattern[@n_in@ + i]; }
int @f@_work(long long *sz_arg, long long *sz_res, long long *sz_iw, long long *sz_w) {
  *sz_arg = @n_in@, *sz_res = @n_out@, *sz_iw = 0, *sz_w = @numbers@;
  return 0;
}
/* Arguments that are missing are zero, results that are missing not wanted. Other than 0 where there is no answer, or an assumption fails. */
int @f@(const double **arg, double **res, long long *iw, double *w, int mem) {
  int status = 0;
  (void)iw, (void)mem;
  for (int i = 0; i < @n_in@; ++i)
    for (int k = @f@_place[i]; k < @f@_place[i + 1]; ++k) w[k] = arg[i] ? arg[i][k - @f@_place[i]] : 0.0;
  @call@;
  for (int i = 0; i < @n_out@; ++i)
    for (int k = @f@_place[@n_in@ + i]; res[i] && k < @f@_place[@n_in@ + i + 1]; ++k) res[i][k - @f@_place[@n_in@ + i]] = w[k];
  return status;
}
