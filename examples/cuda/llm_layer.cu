/* SPDX-License-Identifier: BSD-3-Clause */
/* A transformer layer under tensor and sequence parallelism, forward and backward: attention with
 * grouped heads and a gated MLP. Each PE has a part of the tokens between the products; the four
 * products with communication gather the tokens' rows, or add the PEs' products and scatter the
 * rows:
 *
 *   x (own rows) - norm - [all-gather x QKV] - attention - [x O, reduce-scatter] - + x
 *                - norm - [all-gather x GATE_UP] - swiglu - [x DOWN, reduce-scatter] - + -> out
 *
 * Backward each all-gather + product becomes a product + reduce-scatter, and the reverse.
 *
 *   oshrun -n 2 llm_layer                  compares a small layer with one in double on the host
 *   oshrun -n 2 llm_layer -tokens 4096     times a layer of a model of 70 billion parameters
 *   oshrun -n 2 llm_layer -train 1000      trains a layer, in a graph and call by call
 *   -hidden, -heads, -kv_heads, -dim, -ffn: other sizes
 *
 * Norms have no gains. */
#include <algorithm>
#include "llm_layer_kernels.cuh"
#include "llm_layer_nccl.h"

/* --- Products --------------------------------------------------------------------------------- */

enum way { FUSED, APART, NCCL_APART, WAYS };
static const char *const way_names[WAYS] = {"fused", "one after the other",
                                            "one after the other, NCCL"};

static enum way way;
static shmem_team_t alone; /* of this PE */
static cudaStream_t stream;
static bf16 *summed; /* the whole product, where it is not fused with the sum */

static weft_matrix matrix(bf16 *data, size_t rows, size_t cols, size_t ld) {
    return {data, rows, cols, ld, WEFT_BF16, false};
}
static weft_matrix dense(bf16 *data, size_t rows, size_t cols) {
    return matrix(data, rows, cols, cols);
}
static weft_matrix transposed(weft_matrix m) {
    return {m.data, m.cols, m.rows, m.ld, m.dtype, !m.transposed};
}

/* c = a x b on this GPU. */
static void multiply(weft_matrix c, weft_matrix a, weft_matrix b) {
    WEFT(weft_all_gather_matmul(alone, &a, &b, 1, &c, NULL, (weft_stream)stream));
}

/* full = all PEs' rows, c = full x b. */
static void gather_multiply(weft_matrix c, weft_matrix full, weft_matrix shard, weft_matrix b) {
    size_t nelems = shard.rows * shard.cols;
    if (way == FUSED) {
        WEFT(weft_all_gather_matmul(SHMEM_TEAM_WORLD, &shard, &b, 1, &c, &full,
                                    (weft_stream)stream));
        return;
    }
    if (way == APART)
        WEFT(weft_all_gather(SHMEM_TEAM_WORLD, full.data, shard.data, nelems, WEFT_BF16,
                             (weft_stream)stream));
    else
        WEFT(nccl.all_gather(shard.data, full.data, nelems, NCCL_BF16, nccl.comm, stream));
    multiply(c, full, b);
}

/* c = this PE's rows of the sum of all PEs' a x b. */
static void multiply_scatter(weft_matrix c, weft_matrix a, weft_matrix b) {
    size_t nelems = c.rows * c.cols;
    if (way == FUSED) {
        WEFT(weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &a, &b, WEFT_SUM, &c,
                                        (weft_stream)stream));
        return;
    }
    multiply(dense(summed, a.rows, c.cols), a, b);
    if (way == APART)
        WEFT(weft_reduce_scatter(SHMEM_TEAM_WORLD, c.data, summed, nelems, WEFT_BF16, WEFT_SUM,
                                 (weft_stream)stream));
    else
        WEFT(nccl.reduce_scatter(summed, c.data, nelems, NCCL_BF16, NCCL_SUM, nccl.comm, stream));
}

/* --- The layer -------------------------------------------------------------------------------- */

enum { WEIGHTS = 4 }; /* QKV, O, GATE_UP, DOWN */

/* Rows are tokens: of this PE where the comment says so, otherwise all. */
static struct {
    sizes s;
    weft_matrix weights[WEIGHTS], gradients[WEIGHTS];
    float *exact[WEIGHTS];                            /* of which the weights are rounded */
    weft_matrix x, target, h1, x1, h2, out;           /* own rows */
    weft_matrix dout, dx1, dh, dx;                    /* own rows */
    weft_matrix h1_full, qkv, o, h2_full, gate_up, a; /* kept for the way back */
    weft_matrix dout_full, da, dgate_up, dx1_full, d_o, dqkv;
    bf16 *p;        /* the attention's weights, a square for each head */
    bf16 *dp;       /* of one head */
    bf16 *dk, *dv;  /* of each query head */
    float *squares; /* of the distance from the target, a part of each warp */
    size_t blocks;  /* of a kernel: a small layer has not enough work for BLOCKS_MAX */
} l;

enum { BLOCKS_MAX = 256 };

template <class T> static T *on_gpu(size_t nelems) {
    T *p;
    CUDA(cudaMalloc(&p, nelems * sizeof *p));
    return p;
}

static weft_matrix new_matrix(size_t rows, size_t cols) {
    return dense(on_gpu<bf16>(rows * cols), rows, cols);
}
/* For what is communicated: Weft's large collectives need symmetric memory, its products do not. */
static weft_matrix symmetric_matrix(size_t rows, size_t cols) {
    return dense(example_malloc<bf16>(rows * cols), rows, cols);
}

static void fill(weft_matrix m, float *exact, uint64_t seed, tensor which) {
    std::vector<bf16> image(m.rows * m.cols);
    std::vector<float> values(image.size());
    for (size_t i = 0; i < image.size(); i++) {
        values[i] = element_of(l.s, seed, which, whole_row(l.s, which, i / m.cols),
                               whole_col(l.s, which, i % m.cols));
        image[i] = narrow(values[i]);
    }
    CUDA(cudaMemcpy(m.data, image.data(), image.size() * sizeof(bf16), cudaMemcpyHostToDevice));
    if (exact)
        CUDA(cudaMemcpy(exact, values.data(), values.size() * sizeof(float),
                        cudaMemcpyHostToDevice));
}

static void weights_begin(uint64_t seed) {
    for (int i = 0; i < WEIGHTS; i++)
        fill(l.weights[i], l.exact[i], seed, (tensor)(QKV + i));
    fill(l.x, NULL, seed, X);
    fill(l.target, NULL, seed, TARGET);
}

static void layer_begin(const sizes &s) {
    size_t outputs[WEIGHTS] = {s.qkv_cols(), s.hidden, 2 * s.own_ffn(), s.hidden};
    size_t inputs[WEIGHTS] = {s.hidden, s.o_cols(), s.hidden, s.own_ffn()};
    l.s = s;
    for (int i = 0; i < WEIGHTS; i++) {
        l.weights[i] = new_matrix(outputs[i], inputs[i]);
        l.gradients[i] = new_matrix(outputs[i], inputs[i]);
        l.exact[i] = on_gpu<float>(outputs[i] * inputs[i]);
    }
    for (weft_matrix *m :
         {&l.x, &l.target, &l.h1, &l.x1, &l.h2, &l.out, &l.dout, &l.dx1, &l.dh, &l.dx})
        *m = symmetric_matrix(s.rows(), s.hidden);
    for (weft_matrix *m : {&l.h1_full, &l.h2_full, &l.dout_full, &l.dx1_full})
        *m = symmetric_matrix(s.tokens, s.hidden);
    for (weft_matrix *m : {&l.qkv, &l.dqkv})
        *m = new_matrix(s.tokens, s.qkv_cols());
    for (weft_matrix *m : {&l.o, &l.d_o})
        *m = new_matrix(s.tokens, s.o_cols());
    for (weft_matrix *m : {&l.gate_up, &l.dgate_up})
        *m = new_matrix(s.tokens, 2 * s.own_ffn());
    for (weft_matrix *m : {&l.a, &l.da})
        *m = new_matrix(s.tokens, s.own_ffn());
    l.p = on_gpu<bf16>(s.own_heads() * s.tokens * s.tokens);
    l.dp = on_gpu<bf16>(s.tokens * s.tokens);
    l.dk = on_gpu<bf16>(s.own_heads() * s.tokens * s.dim);
    l.dv = on_gpu<bf16>(s.own_heads() * s.tokens * s.dim);
    l.blocks = std::min<size_t>(BLOCKS_MAX, (s.tokens * s.hidden + THREADS - 1) / THREADS);
    l.squares = on_gpu<float>(l.blocks * WARPS);
    summed = example_malloc<bf16>(s.tokens * s.hidden);
}

static bf16 *at(weft_matrix m) {
    return (bf16 *)m.data;
}
static size_t count(weft_matrix m) {
    return m.rows * m.cols;
}

/* --- Attention: of this PE's heads, head by head ---------------------------------------------- */

/* Columns of a head in a matrix of heads. */
static weft_matrix head_of(weft_matrix m, size_t head) {
    return matrix(at(m) + head * l.s.dim, l.s.tokens, l.s.dim, m.cols);
}
static size_t key_head(size_t head) {
    return l.s.own_heads() + head / (l.s.heads / l.s.kv_heads);
}
static size_t value_head(size_t head) {
    return key_head(head) + l.s.own_kv_heads();
}
static weft_matrix square_of(size_t head) {
    return dense(l.p + head * l.s.tokens * l.s.tokens, l.s.tokens, l.s.tokens);
}

static void attend(void) {
    float scale = 1 / sqrtf((float)l.s.dim);
    size_t rotated = l.s.own_heads() + l.s.own_kv_heads();
    rotate<<<l.blocks, THREADS, 0, stream>>>(at(l.qkv), l.s.tokens, rotated, l.s.dim, l.qkv.cols,
                                             1.0f);
    for (size_t head = 0; head < l.s.own_heads(); head++) {
        weft_matrix p = square_of(head);
        multiply(p, head_of(l.qkv, head), transposed(head_of(l.qkv, key_head(head))));
        softmax<<<l.blocks, THREADS, 0, stream>>>(at(p), l.s.tokens, scale);
        multiply(head_of(l.o, head), p, head_of(l.qkv, value_head(head)));
    }
}

/* The gradients of a head's keys and values are parts of those of its group. */
static void attend_back(void) {
    float scale = 1 / sqrtf((float)l.s.dim);
    size_t rotated = l.s.own_heads() + l.s.own_kv_heads(), each = l.s.tokens * l.s.dim;
    size_t group = l.s.heads / l.s.kv_heads;
    for (size_t head = 0; head < l.s.own_heads(); head++) {
        weft_matrix p = square_of(head), dp = dense(l.dp, l.s.tokens, l.s.tokens);
        weft_matrix dk = dense(l.dk + head * each, l.s.tokens, l.s.dim);
        weft_matrix dv = dense(l.dv + head * each, l.s.tokens, l.s.dim);
        multiply(dp, head_of(l.d_o, head), transposed(head_of(l.qkv, value_head(head))));
        multiply(dv, transposed(p), head_of(l.d_o, head));
        softmax_back<<<l.blocks, THREADS, 0, stream>>>(at(dp), at(p), l.s.tokens, scale);
        multiply(head_of(l.dqkv, head), dp, head_of(l.qkv, key_head(head)));
        multiply(dk, transposed(dp), head_of(l.qkv, head));
    }
    for (size_t first = 0; first < l.s.own_heads(); first += group) {
        bf16 *keys = at(head_of(l.dqkv, key_head(first)));
        bf16 *values = at(head_of(l.dqkv, value_head(first)));
        sum_heads<<<l.blocks, THREADS, 0, stream>>>(keys, l.dqkv.cols, l.dk + first * each, group,
                                                    l.s.tokens, l.s.dim);
        sum_heads<<<l.blocks, THREADS, 0, stream>>>(values, l.dqkv.cols, l.dv + first * each, group,
                                                    l.s.tokens, l.s.dim);
    }
    rotate<<<l.blocks, THREADS, 0, stream>>>(at(l.dqkv), l.s.tokens, rotated, l.s.dim, l.dqkv.cols,
                                             -1.0f);
}

/* --- Forward and backward --------------------------------------------------------------------- */

static void forward(void) {
    size_t rows = l.s.rows(), cols = l.s.hidden;
    norm<<<l.blocks, THREADS, 0, stream>>>(at(l.h1), at(l.x), rows, cols);
    gather_multiply(l.qkv, l.h1_full, l.h1, transposed(l.weights[0]));
    attend();
    multiply_scatter(l.x1, l.o, transposed(l.weights[1]));
    add<<<l.blocks, THREADS, 0, stream>>>(at(l.x1), at(l.x), rows * cols);
    norm<<<l.blocks, THREADS, 0, stream>>>(at(l.h2), at(l.x1), rows, cols);
    gather_multiply(l.gate_up, l.h2_full, l.h2, transposed(l.weights[2]));
    swiglu<<<l.blocks, THREADS, 0, stream>>>(at(l.a), at(l.gate_up), l.s.tokens, l.s.own_ffn());
    multiply_scatter(l.out, l.a, transposed(l.weights[3]));
    add<<<l.blocks, THREADS, 0, stream>>>(at(l.out), at(l.x1), rows * cols);
}

/* A weight's gradient is the transposed gradient of its outputs times its inputs. */
static void backward(void) {
    size_t rows = l.s.rows(), cols = l.s.hidden;
    gather_multiply(l.da, l.dout_full, l.dout, l.weights[3]);
    multiply(l.gradients[3], transposed(l.dout_full), l.a);
    swiglu_back<<<l.blocks, THREADS, 0, stream>>>(at(l.dgate_up), at(l.da), at(l.gate_up),
                                                  l.s.tokens, l.s.own_ffn());
    multiply_scatter(l.dh, l.dgate_up, l.weights[2]);
    multiply(l.gradients[2], transposed(l.dgate_up), l.h2_full);
    norm_back<<<l.blocks, THREADS, 0, stream>>>(at(l.dx1), at(l.dh), at(l.x1), at(l.dout), rows,
                                                cols);
    gather_multiply(l.d_o, l.dx1_full, l.dx1, l.weights[1]);
    multiply(l.gradients[1], transposed(l.dx1_full), l.o);
    attend_back();
    multiply_scatter(l.dh, l.dqkv, l.weights[0]);
    multiply(l.gradients[0], transposed(l.dqkv), l.h1_full);
    norm_back<<<l.blocks, THREADS, 0, stream>>>(at(l.dx), at(l.dh), at(l.x), at(l.dx1), rows, cols);
}

static void lose(void) {
    loss_back<<<l.blocks, THREADS, 0, stream>>>(at(l.dout), l.squares, at(l.out), at(l.target),
                                                count(l.out), (float)(l.s.tokens * l.s.hidden));
}

static void learn(void) {
    const float rate = 1.0f;
    for (int i = 0; i < WEIGHTS; i++)
        descend<<<l.blocks, THREADS, 0, stream>>>(at(l.weights[i]), l.exact[i], at(l.gradients[i]),
                                                  count(l.weights[i]), rate);
}

static void step(void) {
    forward();
    lose();
    backward();
    learn();
}

/* Returns the mean of the squared distances over all PEs. */
static double loss(void) {
    static double own, all; /* symmetric */
    std::vector<float> parts(l.blocks * WARPS);
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(parts.data(), l.squares, parts.size() * sizeof(float), cudaMemcpyDeviceToHost));
    own = 0;
    for (float part : parts)
        own += (double)part;
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &all, &own, 1);
    return all / (double)(l.s.tokens * l.s.hidden);
}

/* --- The check of a small layer --------------------------------------------------------------- */

static std::vector<float> on_host(weft_matrix m) {
    std::vector<bf16> image(count(m));
    std::vector<float> values;
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(image.data(), m.data, image.size() * sizeof(bf16), cudaMemcpyDeviceToHost));
    for (bf16 each : image)
        values.push_back(wide(each));
    return values;
}

static long check_out(const reference &r) {
    numbers wanted = reference_forward(r);
    std::vector<float> found = on_host(l.out);
    long wrong = 0;
    for (size_t i = 0; i < found.size(); i++)
        wrong += !(fabs((double)found[i] - wanted[l.s.me * found.size() + i]) < 0.1);
    return wrong;
}

/* Compares some gradients, as far as bf16 shows them. */
static long check_gradients(reference &r, uint64_t seed) {
    enum { CHECKED = 4 };
    long wrong = 0;
    for (int i = 0; i < WEIGHTS * CHECKED; i++) {
        tensor which = (tensor)(QKV + i / CHECKED);
        weft_matrix gradients = l.gradients[i / CHECKED];
        std::vector<float> found = on_host(gradients);
        size_t k = example_draw(seed, (uint64_t)i) % found.size();
        size_t row = whole_row(l.s, which, k / gradients.cols);
        size_t col = whole_col(l.s, which, k % gradients.cols);
        size_t cols = gradients.cols * (which == O || which == DOWN ? l.s.n : 1);
        double wanted = reference_gradient(r, which, row * cols + col), top = 0;
        for (float each : found)
            top = fmax(top, fabs((double)each));
        wrong += !(fabs((double)found[k] - wanted) < 0.05 * top);
    }
    return wrong;
}

static long check(uint64_t seed) {
    reference r = reference_of(l.s, seed);
    long wrong = 0;
    weights_begin(seed);
    for (int each = FUSED; each <= APART; each++) {
        way = (enum way)each;
        forward();
        lose();
        backward();
        wrong += check_out(r) + check_gradients(r, seed);
        wrong += !(fabs(loss() - reference_loss(r)) < 0.02 * loss());
    }
    return wrong;
}

/* --- Times and training ----------------------------------------------------------------------- */

static cudaGraphExec_t captured(void (*work)(void)) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    work(); /* memory and plans before the capture */
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    work();
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

/* Returns the milliseconds of a graph: the median, of the slowest PE. */
static double milliseconds(void (*work)(void)) {
    enum { REPLAYS = 9 };
    static double own, slowest; /* symmetric */
    cudaGraphExec_t graph = captured(work);
    cudaEvent_t first, last;
    float samples[REPLAYS];
    CUDA(cudaEventCreate(&first));
    CUDA(cudaEventCreate(&last));
    for (int i = -2; i < REPLAYS; i++) {
        CUDA(cudaStreamSynchronize(stream));
        shmem_barrier_all();
        CUDA(cudaEventRecord(first, stream));
        CUDA(cudaGraphLaunch(graph, stream));
        CUDA(cudaEventRecord(last, stream));
        CUDA(cudaEventSynchronize(last));
        if (i >= 0)
            CUDA(cudaEventElapsedTime(&samples[i], first, last));
    }
    std::sort(samples, samples + REPLAYS);
    own = (double)samples[REPLAYS / 2];
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, &slowest, &own, 1);
    CUDA(cudaGraphExecDestroy(graph));
    return slowest;
}

static void forward_and_loss(void) {
    forward();
    lose();
}

static void print_times(void) {
    bool has_nccl = nccl_open();
    if (l.s.me == 0)
        printf("%zu tokens, hidden %zu, %zu heads, %zu of keys, MLP %zu, %zu PEs; ms in a graph\n"
               "%-26s %9s %9s\n",
               l.s.tokens, l.s.hidden, l.s.heads, l.s.kv_heads, l.s.ffn, l.s.n, "products",
               "forward", "backward");
    for (int each = FUSED; each < (has_nccl ? WAYS : NCCL_APART); each++) {
        way = (enum way)each;
        double ahead = milliseconds(forward_and_loss), back = milliseconds(backward);
        if (l.s.me == 0)
            printf("%-26s %9.3f %9.3f\n", way_names[each], ahead, back);
    }
    if (!has_nccl && l.s.me == 0)
        printf("%-26s skipped: there is no libnccl.so.2\n", way_names[NCCL_APART]);
}

/* Returns whether the losses of `steps` steps in a graph are those of steps without one, which have
 * the same bits, and become smaller. */
static bool train(uint64_t seed, int steps) {
    double first = 0, eager = 0, replayed = 0;
    way = FUSED;
    weights_begin(seed);
    for (int i = 0; i < steps; i++) {
        step();
        if (i == 0)
            first = loss();
    }
    eager = loss();
    cudaGraphExec_t graph = captured(step);
    weights_begin(seed);
    for (int i = 0; i < steps; i++) {
        CUDA(cudaGraphLaunch(graph, stream));
        if (i % (steps / 10 + 1) == 0 || i == steps - 1) {
            replayed = loss();
            if (l.s.me == 0)
                printf("step %5d: loss %.6f\n", i + 1, replayed);
        }
    }
    if (l.s.me == 0)
        printf("without a graph: loss %.6f after the first step, %.6f at the end\n", first, eager);
    return replayed == eager && eager < first;
}

/* --- The program ------------------------------------------------------------------------------ */

static size_t option(int argc, char **argv, const char *name, size_t value) {
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    return value;
}

/* Returns the sizes that the program was asked for; by default those of 70 billion parameters, or
 * small ones, which any number of PEs divides. */
static sizes sizes_of(int argc, char **argv, size_t tokens, bool small) {
    size_t n = (size_t)shmem_n_pes();
    sizes s = {tokens ? tokens : 16 * n,
               option(argc, argv, "-hidden", small ? 64 : 8192),
               option(argc, argv, "-heads", small ? 4 * n : 64),
               option(argc, argv, "-kv_heads", small ? 2 * n : 8),
               option(argc, argv, "-dim", small ? 8 : 128),
               option(argc, argv, "-ffn", small ? 64 * n : 28672),
               n,
               (size_t)shmem_my_pe()};
    bool divides = s.tokens % s.n == 0 && s.heads % s.kv_heads == 0 && s.kv_heads % s.n == 0 &&
                   s.ffn % s.n == 0 && s.dim % 2 == 0;
    example_need(divides, "llm_layer",
                 "the PEs must divide -tokens, -kv_heads and -ffn, and -kv_heads -heads");
    return s;
}

int main(int argc, char **argv) {
    example_begin();
    size_t tokens = option(argc, argv, "-tokens", 0), steps = option(argc, argv, "-train", 0);
    uint64_t seed = example_seed();
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        shmem_team_t of_pe;
        WEFT(shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, NULL, 0, &of_pe));
        if (pe == shmem_my_pe())
            alone = of_pe;
    }
    CUDA(cudaStreamCreate(&stream));
    layer_begin(sizes_of(argc, argv, tokens, tokens == 0));
    long wrong = 0;
    if (steps > 0)
        wrong = !train(seed, (int)steps);
    else if (tokens == 0)
        wrong = check(seed);
    if (tokens > 0 && steps == 0) {
        weights_begin(seed);
        print_times();
    }
    weft_device_team unused = {};
    return example_end("llm_layer", wrong, &unused);
}
