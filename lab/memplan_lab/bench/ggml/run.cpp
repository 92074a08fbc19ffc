// Runs a network of llama.cpp twice, with ggml's own addresses and with memplan's, and prints one
// JSON object: the bytes of the compute buffers as llama.cpp reports them, what each plan cost, and
// a hash of all logits.
//
//     run MODEL CONTEXT BATCH FLASH LIMIT TOKENS [FOLDER]
//
// LIMIT is the most bytes of a buffer, 0 for none. TOKENS are computed at once and some one by one;
// 0 reserves memory and computes nothing. FOLDER gets the lists of events.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "llama-ext.h"
#include "llama.h"
#include "memplan_ggml.h"

namespace {

size_t limit = 0;

size_t get_limit(ggml_backend_buffer_type_t) { return limit; }

struct Observed {
  std::string folder, plans;
  int count = 0;
};

void observe(const memplan_ggml_result* result, const char* events, void* user_data) {
  Observed& observed = *static_cast<Observed*>(user_data);
  char line[300];
  std::snprintf(line, sizeof line,
                "%s{\"blocks\": %zu, \"host\": %zu, \"host_chunks\": %d, \"bytes\": %zu, "
                "\"chunks\": %d, \"bound\": %zu, \"seconds\": %.6f}",
                observed.count != 0 ? ", " : "", result->blocks, result->host_bytes,
                result->host_chunks, result->bytes, result->chunks, result->bound,
                result->cpu_seconds);
  observed.plans += line;
  if (!observed.folder.empty() && events != nullptr) {
    std::ofstream(observed.folder + "/" + std::to_string(observed.count) + ".events") << events;
  }
  ++observed.count;
}

struct Answer {
  size_t compute = 0;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
};

void add(uint64_t& hash, const float* values, size_t count) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(values);
  for (size_t i = 0; i < count * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
}

Answer run(llama_model* model, llama_context_params params, int tokens) {
  Answer answer;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) std::exit(1);
  const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (int begin = 0, next = tokens; begin < tokens + 4 && tokens > 0; begin += next, next = 1) {
    llama_batch batch = llama_batch_init(next, 0, 1);
    for (int i = 0; i < next; ++i) {
      batch.token[i] = (begin + i) * 7919 % words;
      batch.pos[i] = begin + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    batch.n_tokens = next;
    if (llama_decode(context, batch) != 0) std::exit(1);
    for (int i = 0; i < next; ++i) add(answer.hash, llama_get_logits_ith(context, i), words);
    llama_batch_free(batch);
  }
  for (const auto& each : llama_get_memory_breakdown(context))
    answer.compute += each.second.compute;
  llama_free(context);
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  limit = std::strtoull(argv[5], nullptr, 10);
  const int tokens = std::atoi(argv[6]);
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level >= GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  llama_backend_init();
  if (limit != 0) ggml_backend_cpu_buffer_type()->iface.get_max_size = get_limit;

  llama_model_params load = llama_model_default_params();
  load.no_alloc = tokens == 0;
  load.use_extra_bufts = false;
  if (load.no_alloc) load.load_mode = LLAMA_LOAD_MODE_NONE;
  llama_model* model = llama_model_load_from_file(argv[1], load);
  if (model == nullptr) return 1;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(std::atoi(argv[2]));
  params.n_batch = params.n_ubatch = static_cast<uint32_t>(std::atoi(argv[3]));
  params.n_threads = params.n_threads_batch = 1;
  params.flash_attn_type =
      std::atoi(argv[4]) != 0 ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;

  Observed observed;
  if (argc > 7) observed.folder = argv[7];
  memplan_ggml_observe(observe, &observed);
  memplan_ggml_enable(0);
  const Answer host = run(model, params, tokens);
  memplan_ggml_enable(1);
  const Answer planned = run(model, params, tokens);
  std::printf(
      "{\"host\": %zu, \"bytes\": %zu, \"host_hash\": \"%016llx\", \"hash\": \"%016llx\", "
      "\"plans\": [%s]}\n",
      host.compute, planned.compute, static_cast<unsigned long long>(host.hash),
      static_cast<unsigned long long>(planned.hash), observed.plans.c_str());
  llama_model_free(model);
  llama_backend_free();
  return 0;
}
