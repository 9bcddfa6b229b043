/*
 * The ggml backend of matmul.h. While a graph is computed, custom operations replace its products; each has the memory
 * of the operation that it replaces. Afterwards the graph is as it was.
 *
 * A backend consists of structs of functions, which ggml-backend-impl.h declares. That is not a public header, so the
 * release is checked when this is built and when it runs.
 */
#include "engine/llama/matmul.h"
#include "base/log.h"
#include "engine/llama/q4_1.h"

#include <ggml-backend-impl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(GGML_BACKEND_API_VERSION == 2, "ggml's structs of a backend are not those that this was written for");

#define NAME  "FM"
#define CHUNK 16 /* rows that a thread takes at once: few, so that all threads end at the same time */

/* With fewer columns ggml is faster. */
#define COLUMNS_MIN 2

/* An operation that replaces one of ggml's. */
struct operation {
    struct fm_q4_1_product product;
    bool quantises;    /* false: the operation before it has quantised the same columns */
    atomic_int ready;  /* threads that have quantised their part */
    atomic_size_t row; /* the next row that no thread has taken yet */
    struct ggml_tensor *tensor;
    struct ggml_tensor *original;
    int at; /* the operation's index in the graph */
};

struct computer {
    ggml_backend_t cpu;
    struct ggml_context *tensors; /* holds the tensors of the operations */
    struct operation *operations;
    size_t room; /* how many operations fit */
    struct fm_q4_1_tile *tiles;
    size_t tile_room;
};

static struct {
    const struct fm_q4_1_kernel *kernel; /* NULL: not registered */
    ggml_backend_dev_t cpu;
    struct ggml_threadpool *threads;
    bool making_context;
    bool has_products; /* a context was made that has such products */
} shared;

/* ---- the CPU's backend ---- */

/* Copies the address of a function in its library to `*function`, a pointer to a function: ISO C has no such cast. */
static bool find_cpu_function(const char *name, void *function) {
    void *found = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(shared.cpu), name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void set_thread_count(ggml_backend_t backend, int count) {
    ggml_backend_set_n_threads_t set;
    struct computer *computer = backend->context;
    if (find_cpu_function("ggml_backend_set_n_threads", &set)) {
        set(computer->cpu, count);
    }
}

static void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *argument) {
    ggml_backend_set_abort_callback_t set;
    struct computer *computer = backend->context;
    if (find_cpu_function("ggml_backend_set_abort_callback", &set)) {
        set(computer->cpu, callback, argument);
    }
}

static void set_threads(struct computer *computer) {
    void (*set)(ggml_backend_t, struct ggml_threadpool *);
    if (find_cpu_function("ggml_backend_cpu_set_threadpool", &set)) {
        set(computer->cpu, shared.threads);
    }
}

/* ---- an operation ---- */

/* Whether a kernel of ours computes the operation: weights as in the model's file, times columns of floats. */
static bool is_ours(const struct ggml_tensor *node) {
    if (node->op != GGML_OP_MUL_MAT) {
        return false;
    }
    const struct ggml_tensor *weights = node->src[0];
    const struct ggml_tensor *in = node->src[1];
    return weights->type == GGML_TYPE_Q4_1 && in->type == GGML_TYPE_F32 && node->type == GGML_TYPE_F32 &&
           in->ne[1] >= COLUMNS_MIN && ggml_is_matrix(weights) && ggml_is_matrix(in) && in->nb[0] == sizeof(float) &&
           node->nb[0] == sizeof(float) && weights->nb[0] == sizeof(struct fm_q4_1_block) && weights->buffer &&
           ggml_backend_buffer_is_host(weights->buffer) && node->op_params[1] != GGML_HINT_SRC0_IS_HADAMARD;
}

static void wait_for_all(struct operation *operation, int threads) {
    atomic_fetch_add_explicit(&operation->ready, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&operation->ready, memory_order_acquire) < threads) {
        __builtin_ia32_pause(); /* ggml waits for its threads in the same way */
    }
}

/* Runs on each of ggml's threads; this one is number `thread` of `threads`. */
static void compute_operation(struct ggml_tensor *tensor, int thread, int threads, void *argument) {
    struct operation *operation = argument;
    const struct fm_q4_1_product *product = &operation->product;
    size_t number = (size_t)thread;
    size_t count = (size_t)threads;
    (void)tensor;
    if (operation->quantises) {
        fm_q4_1_quantise(product, product->blocks * number / count, product->blocks * (number + 1) / count);
        wait_for_all(operation, threads);
    }
    size_t row;
    while ((row = atomic_fetch_add_explicit(&operation->row, CHUNK, memory_order_relaxed)) < product->rows) {
        fm_q4_1_multiply(product, row, row + CHUNK < product->rows ? row + CHUNK : product->rows);
    }
}

static void describe(struct operation *operation, struct ggml_tensor *node, int at, struct fm_q4_1_tile *tiles) {
    const struct ggml_tensor *weights = node->src[0];
    const struct ggml_tensor *in = node->src[1];
    operation->product = (struct fm_q4_1_product){
        .kernel = shared.kernel,
        .weights = weights->data,
        .row_bytes = weights->nb[1],
        .rows = (size_t)weights->ne[1],
        .blocks = (size_t)weights->ne[0] / FM_Q4_1_BLOCK,
        .in = in->data,
        .in_stride = in->nb[1] / sizeof(float),
        .columns = (size_t)in->ne[1],
        .tiles = tiles,
        .out = node->data,
        .out_stride = node->nb[1] / sizeof(float),
    };
    atomic_store_explicit(&operation->ready, 0, memory_order_relaxed);
    atomic_store_explicit(&operation->row, 0, memory_order_relaxed);
    operation->tensor->flags = node->flags;
    operation->tensor->data = node->data;
    operation->original = node;
    operation->at = at;
}

/* ---- a graph ---- */

static bool make_operations(struct computer *computer, size_t count) {
    if (count <= computer->room) {
        return true;
    }
    ggml_free(computer->tensors);
    free(computer->operations);
    computer->room = 0;
    computer->tensors =
        ggml_init((struct ggml_init_params){.mem_size = count * ggml_tensor_overhead(), .no_alloc = true});
    computer->operations = calloc(count, sizeof *computer->operations);
    if (!computer->tensors || !computer->operations) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct operation *operation = &computer->operations[i];
        operation->tensor = ggml_custom_4d(computer->tensors, GGML_TYPE_F32, 1, 1, 1, 1, NULL, 0, compute_operation,
                                           GGML_N_TASKS_MAX, operation);
    }
    computer->room = count;
    return true;
}

static bool make_tiles(struct computer *computer, size_t count) {
    if (count <= computer->tile_room) {
        return true;
    }
    free(computer->tiles);
    computer->tiles = aligned_alloc(64, count * sizeof *computer->tiles);
    computer->tile_room = computer->tiles ? count : 0;
    if (computer->tiles) {
        memset(computer->tiles, 0, count * sizeof *computer->tiles);
    }
    return computer->tiles != NULL;
}
_Static_assert(sizeof(struct fm_q4_1_tile) % 64 == 0, "aligned_alloc wants whole multiples, and the processor lines");

/* Makes room for all products of the graph; false: there is no memory. */
static bool prepare_products(struct computer *computer, struct ggml_tensor **nodes, int node_count) {
    size_t count = 0;
    size_t most = 0;
    for (int i = 0; i < node_count; i++) {
        if (is_ours(nodes[i])) {
            size_t blocks = (size_t)nodes[i]->src[0]->ne[0] / FM_Q4_1_BLOCK;
            size_t tiles = fm_q4_1_tiles((size_t)nodes[i]->src[1]->ne[1], blocks);
            most = tiles > most ? tiles : most;
            count++;
        }
    }
    return make_operations(computer, count) && make_tiles(computer, most);
}

/* Replaces the products; returns how many. */
static size_t replace(struct computer *computer, struct ggml_tensor **nodes, int node_count) {
    const struct ggml_tensor *in = NULL; /* the columns that the tiles hold at that point */
    size_t count = 0;
    for (int i = 0; i < node_count; i++) {
        if (is_ours(nodes[i])) {
            struct operation *operation = &computer->operations[count++];
            describe(operation, nodes[i], i, computer->tiles);
            operation->quantises = nodes[i]->src[1] != in;
            in = nodes[i]->src[1];
            nodes[i] = operation->tensor;
        }
    }
    return count;
}

static enum ggml_status compute_graph(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct computer *computer = backend->context;
    struct ggml_tensor **nodes = ggml_graph_nodes(graph);
    int node_count = ggml_graph_n_nodes(graph);
    size_t count = 0;
    if (prepare_products(computer, nodes, node_count)) { /* otherwise ggml computes all of it */
        count = replace(computer, nodes, node_count);
    }
    set_threads(computer);
    enum ggml_status status = ggml_backend_graph_compute(computer->cpu, graph);
    for (size_t i = 0; i < count; i++) {
        nodes[computer->operations[i].at] = computer->operations[i].original;
    }
    return status;
}

/* ---- the backend ---- */

static const char *name_of(ggml_backend_t backend) {
    (void)backend;
    return NAME;
}

static void free_backend(ggml_backend_t backend) {
    struct computer *computer = backend->context;
    ggml_backend_free(computer->cpu);
    ggml_free(computer->tensors);
    free(computer->operations);
    free(computer->tiles);
    free(computer);
    free(backend);
}

static ggml_backend_t make_backend(ggml_backend_dev_t device, const char *unused) {
    static ggml_guid guid = {'f', 'm', '-', 'p', 'r', 'o', 'x', 'y', ' ', 'm', 'a', 't', 'm', 'u', 'l', ' '};
    struct computer *computer = calloc(1, sizeof *computer);
    ggml_backend_t backend = calloc(1, sizeof *backend);
    ggml_backend_t cpu = computer && backend ? ggml_backend_dev_init(shared.cpu, NULL) : NULL;
    (void)unused;
    if (!cpu) {
        free(computer);
        free(backend);
        return NULL; /* llama.cpp then makes no context */
    }
    computer->cpu = cpu;
    *backend = (struct ggml_backend){
        .guid = &guid,
        .iface = {.get_name = name_of, .free = free_backend, .graph_compute = compute_graph},
        .device = device,
        .context = computer,
    };
    return backend;
}

/* ---- the device ---- */

static const char *device_name(ggml_backend_dev_t device) {
    (void)device;
    return NAME;
}

static void device_memory(ggml_backend_dev_t device, size_t *available, size_t *total) {
    (void)device; /* the device has no memory of its own */
    *available = 0;
    *total = 0;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void device_properties(ggml_backend_dev_t device, struct ggml_backend_dev_props *properties) {
    ggml_backend_dev_get_props(shared.cpu, properties);
    properties->name = device_name(device);
    properties->description = device_name(device);
    properties->type = device_type(device);
    device_memory(device, &properties->memory_free, &properties->memory_total);
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return ggml_backend_dev_buffer_type(shared.cpu);
}

/*
 * While a context is made, llama.cpp checks which backend computes its fused operations, and does not use them if that
 * is not the backend of the layer's weights, the CPU's. So until then this backend only takes the products. Afterwards
 * it takes everything that the CPU's can do: the graph stays in one piece, and the threads do not have to wait between
 * parts.
 */
static bool supports_operation(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    (void)device;
    if (shared.making_context) {
        bool ours = is_ours(node);
        shared.has_products = shared.has_products || ours;
        return ours;
    }
    return shared.has_products && ggml_backend_dev_supports_op(shared.cpu, node);
}

static bool supports_buffer_type(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
    (void)device;
    return ggml_backend_dev_supports_buft(shared.cpu, type);
}

static struct ggml_backend_device the_device = {
    .iface =
        {
            .get_name = device_name,
            .get_description = device_name,
            .get_memory = device_memory,
            .get_type = device_type,
            .get_props = device_properties,
            .init_backend = make_backend,
            .get_buffer_type = device_buffer_type,
            .supports_op = supports_operation,
            .supports_buft = supports_buffer_type,
        },
};

/* ---- ggml's list of backends ---- */

static const char *registered_name(ggml_backend_reg_t registered) {
    (void)registered;
    return NAME;
}

static size_t device_count(ggml_backend_reg_t registered) {
    (void)registered;
    return 1;
}

static ggml_backend_dev_t device_at(ggml_backend_reg_t registered, size_t index) {
    (void)index;
    the_device.reg = registered;
    return &the_device;
}

static void *function_by_name(ggml_backend_reg_t registered, const char *name) {
    ggml_backend_set_n_threads_t thread_count = set_thread_count;
    ggml_backend_set_abort_callback_t abort_callback = set_abort_callback;
    void *found = NULL;
    (void)registered;
    if (strcmp(name, "ggml_backend_set_n_threads") == 0) {
        memcpy(&found, &thread_count, sizeof found);
    } else if (strcmp(name, "ggml_backend_set_abort_callback") == 0) {
        memcpy(&found, &abort_callback, sizeof found);
    }
    return found;
}

/* ---- matmul.h ---- */

/* Whether ggml's CPU library was built to use the feature; if so, this processor has it. */
static bool cpu_uses(const char *feature) {
    ggml_backend_get_features_t get;
    if (!find_cpu_function("ggml_backend_get_features", &get)) {
        return false;
    }
    const struct ggml_backend_feature *features = get(ggml_backend_dev_backend_reg(shared.cpu));
    while (features->name && strcmp(features->name, feature) != 0) {
        features++;
    }
    return features->name != NULL;
}

static const struct fm_q4_1_kernel *choose(void) {
    if (!cpu_uses("AVX2") || !cpu_uses("FMA") || !cpu_uses("F16C")) {
        return NULL;
    }
    return cpu_uses("AVX512") && cpu_uses("AVX512_VNNI") ? &fm_q4_1_avx512 : &fm_q4_1_avx2;
}

bool fm_matmul_register(void) {
    static struct ggml_backend_reg registered = {
        .api_version = GGML_BACKEND_API_VERSION,
        .iface = {.get_name = registered_name,
                  .get_device_count = device_count,
                  .get_device = device_at,
                  .get_proc_address = function_by_name},
    };
    shared.cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!shared.cpu || ggml_backend_dev_backend_reg(shared.cpu)->api_version != GGML_BACKEND_API_VERSION) {
        return false;
    }
    shared.kernel = choose();
    if (shared.kernel) {
        ggml_backend_register(&registered);
        fm_log(FM_LOG_DEBUG, "products of Q4_1 are computed with %s", shared.kernel->name);
    }
    return shared.kernel != NULL;
}

struct llama_context *fm_matmul_context(struct llama_model *model, struct llama_context_params params) {
    shared.making_context = true;
    struct llama_context *context = llama_init_from_model(model, params);
    shared.making_context = false;
    return context;
}

void fm_matmul_use_threads(struct ggml_threadpool *threads) {
    shared.threads = threads;
}
