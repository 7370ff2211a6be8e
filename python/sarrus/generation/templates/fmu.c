/* FMI 2.0 for co-simulation: steps of @f@, of @step@ s at most. Value references: inputs, then outputs q and v, in order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "@name@.h"

enum { INPUTS = @inputs@, NQ = @nq@, NV = @nv@, VALUES = INPUTS + NQ + NV };
static const double start[VALUES] = {@start@};
typedef struct {
  double value[VALUES];
} Instance;
typedef void *Component;
typedef enum { OK, WARNING, DISCARD, ERROR } Status;

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT Status fmi2SetDebugLogging(Component c, int on, size_t n, const char *const *categories) { (void)c, (void)on, (void)n, (void)categories; return OK; }
EXPORT Status fmi2Reset(Component c) { memcpy(((Instance *)c)->value, start, sizeof start); return OK; }
EXPORT Component fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const void *functions, int visible, int logging) {
  Instance *c = type == 1 && strcmp(guid, "@guid@") == 0 ? malloc(sizeof *c) : NULL;
  (void)name, (void)resources, (void)functions, (void)visible, (void)logging;
  if (c) fmi2Reset(c);
  return c;
}
EXPORT void fmi2FreeInstance(Component c) { free(c); }
EXPORT Status fmi2SetupExperiment(Component c, int defined, double tolerance, double from, int ends, double to) { (void)c, (void)defined, (void)tolerance, (void)from, (void)ends, (void)to; return OK; }
EXPORT Status fmi2EnterInitializationMode(Component c) { (void)c; return OK; }
EXPORT Status fmi2ExitInitializationMode(Component c) { (void)c; return OK; }
EXPORT Status fmi2Terminate(Component c) { (void)c; return OK; }
EXPORT Status fmi2GetReal(Component c, const unsigned *which, size_t n, double *value) {
  for (size_t i = 0; i < n; ++i) {
    if (which[i] >= VALUES) return ERROR;
    value[i] = ((Instance *)c)->value[which[i]];
  }
  return OK;
}
EXPORT Status fmi2SetReal(Component c, const unsigned *which, size_t n, const double *value) {
  for (size_t i = 0; i < n; ++i) {
    if (which[i] >= VALUES) return ERROR;
    ((Instance *)c)->value[which[i]] = value[i];
  }
  return OK;
}
EXPORT Status fmi2DoStep(Component c, double now, double size, int keeps) {
  double *x = ((Instance *)c)->value, *q = x + INPUTS, *v = q + NQ;
  const double count = fmax(1.0, ceil(size / @step@ - 1e-9)), dt = size / count;
  int status = 0;
  (void)now, (void)keeps;
  for (double i = 0.0; i < count; i += 1.0) status |= @call@;
  for (int k = INPUTS; k < VALUES; ++k)
    if (!(x[k] - x[k] == 0.0)) return ERROR; /* no number */
  return status & 7 ? ERROR : status ? WARNING : OK; /* there was no answer; it may be less exact */
}
/* Nothing of these kinds is here. */
#define NONE(what, type) \
  EXPORT Status fmi2Get##what(Component c, const unsigned *which, size_t n, type *value) { (void)c, (void)which, (void)value; return n ? ERROR : OK; } \
  EXPORT Status fmi2Set##what(Component c, const unsigned *which, size_t n, const type *value) { (void)c, (void)which, (void)value; return n ? ERROR : OK; }
NONE(Integer, int)
NONE(Boolean, int)
NONE(String, const char *)
EXPORT Status fmi2CancelStep(Component c) { (void)c; return ERROR; }
EXPORT Status fmi2GetStatus(Component c, int kind, Status *value) { (void)c, (void)kind, (void)value; return DISCARD; }
EXPORT Status fmi2GetRealStatus(Component c, int kind, double *value) { (void)c, (void)kind, (void)value; return DISCARD; }
EXPORT Status fmi2GetIntegerStatus(Component c, int kind, int *value) { (void)c, (void)kind, (void)value; return DISCARD; }
EXPORT Status fmi2GetBooleanStatus(Component c, int kind, int *value) { (void)c, (void)kind, (void)value; return DISCARD; }
EXPORT Status fmi2GetStringStatus(Component c, int kind, const char **value) { (void)c, (void)kind, (void)value; return DISCARD; }
/* The whole state, to go back to. */
EXPORT Status fmi2GetFMUstate(Component c, void **state) {
  if (!*state) *state = malloc(sizeof(Instance));
  if (!*state) return ERROR;
  memcpy(*state, c, sizeof(Instance));
  return OK;
}
EXPORT Status fmi2SetFMUstate(Component c, void *state) { memcpy(c, state, sizeof(Instance)); return OK; }
EXPORT Status fmi2FreeFMUstate(Component c, void **state) { (void)c; free(*state); *state = NULL; return OK; }
EXPORT Status fmi2SerializedFMUstateSize(Component c, void *state, size_t *size) { (void)c, (void)state; *size = sizeof(Instance); return OK; }
EXPORT Status fmi2SerializeFMUstate(Component c, void *state, char *bytes, size_t size) {
  (void)c;
  if (size < sizeof(Instance)) return ERROR;
  memcpy(bytes, state, sizeof(Instance));
  return OK;
}
EXPORT Status fmi2DeSerializeFMUstate(Component c, const char *bytes, size_t size, void **state) {
  return size < sizeof(Instance) || fmi2GetFMUstate(c, state) != OK ? ERROR : (memcpy(*state, bytes, sizeof(Instance)), OK);
}
EXPORT Status fmi2GetDirectionalDerivative(Component c, const unsigned *of, size_t n, const unsigned *by, size_t m, const double *dby, double *d) {
  (void)c, (void)of, (void)n, (void)by, (void)m, (void)dby, (void)d;
  return ERROR;
}
EXPORT Status fmi2SetRealInputDerivatives(Component c, const unsigned *which, size_t n, const int *order, const double *value) {
  (void)c, (void)which, (void)order, (void)value;
  return n ? ERROR : OK;
}
EXPORT Status fmi2GetRealOutputDerivatives(Component c, const unsigned *which, size_t n, const int *order, double *value) {
  (void)c, (void)which, (void)order, (void)value;
  return n ? ERROR : OK;
}
