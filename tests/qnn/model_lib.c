/* A model library by hand: Relu of x into y, with 72 interface entries, as QNN 2.47 has them. The graph is
   composed as generated code does it: by calling the table that it is given by value. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef ENTRIES
#define ENTRIES 72
#endif

typedef struct { void *entry[ENTRIES]; } Interface;

typedef struct {
  uint32_t version, padding, id;
  const char *name;
  uint32_t type, format, dtype;
  struct { uint32_t definition, encoding; uint64_t value[4]; } quant;
  uint32_t rank;
  uint32_t *dims;
  uint32_t mem_type;
  void *data;
  uint32_t size;
  uint64_t rest[3];
} Tensor;

typedef struct {
  uint32_t type;
  const char *name;
  union { struct { uint32_t dtype; uint64_t value; } scalar; Tensor tensor; } value;
} Param;

typedef struct {
  uint32_t version;
  const char *name, *package, *type;
  uint32_t param_count;
  Param *params;
  uint32_t input_count;
  Tensor *inputs;
  uint32_t output_count;
  Tensor *outputs;
} OpConfig;

typedef struct {
  void *graph;
  char *name;
  Tensor *inputs;
  uint32_t input_count;
  Tensor *outputs;
  uint32_t output_count;
} GraphInfo;

typedef uint64_t (*GraphCreate)(void *, const char *, const void **, void **);
typedef uint64_t (*CreateTensor)(void *, Tensor *);
typedef uint64_t (*AddNode)(void *, OpConfig);

_Static_assert(sizeof(Tensor) == 144, "the library's tensor");

static uint32_t dims[] = {2, 3};
static float bias[] = {1, 2, 3};
static uint32_t bias_dims[] = {3};
static Tensor tensors[4];

static Tensor make(const char *name, uint32_t type) {
  Tensor t;
  memset(&t, 0, sizeof t);
  t.version = 2, t.name = name, t.type = type, t.dtype = 0x232, t.rank = 2, t.dims = dims;
  t.quant.definition = t.quant.encoding = 0x7fffffff;
  return t;
}

__attribute__((visibility("default"))) int QnnModel_composeGraphs(
    void *backend, Interface qnn, void *context, const void **configs, uint32_t config_count,
    GraphInfo ***infos, uint32_t *count, bool debug, void *callback, uint32_t level) {
  (void)backend, (void)configs, (void)config_count;
  if (debug || callback || level) return 8;
  if (getenv("MODEL_LIB_CRASHES")) *(volatile int *)8 = 1;
  void *graph = 0;
  if (((GraphCreate)qnn.entry[15])(context, "by_hand", 0, &graph)) return 4;
  tensors[0] = make("x", 0), tensors[1] = make("bias", 4), tensors[2] = make("sum", 3), tensors[3] = make("y", 1);
  tensors[1].rank = 1, tensors[1].dims = bias_dims, tensors[1].data = bias, tensors[1].size = sizeof bias;
  for (int i = 0; i < 4; i++)
    if (((CreateTensor)qnn.entry[24])(graph, &tensors[i])) return 1;
  OpConfig add = {1, "add", "qti.aisw", "ElementWiseAdd", 0, 0, 2, tensors, 1, tensors + 2};
  OpConfig relu = {1, "relu", "qti.aisw", "Relu", 0, 0, 1, tensors + 2, 1, tensors + 3};
  if (((AddNode)qnn.entry[18])(graph, add) || ((AddNode)qnn.entry[18])(graph, relu)) return 3;
  GraphInfo *info = calloc(1, sizeof *info);
  *info = (GraphInfo){graph, "by_hand", tensors, 1, tensors + 3, 1};
  *infos = malloc(sizeof **infos);
  **infos = info;
  *count = 1;
  return 0;
}

__attribute__((visibility("default"))) int QnnModel_freeGraphsInfo(GraphInfo ***infos, uint32_t count) {
  if (!*infos || count != 1) return 8;
  free(**infos), free(*infos);
  *infos = 0;
  return 0;
}
