/* Included in ggml-alloc.c behind the function ggml_gallocr_alloc_graph_impl: from there on, a
 * graph is laid out by this function, a second time where memplan's plan is better. */
static void memplan_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph* graph,
                                const int* node_buffer_ids, const int* leaf_buffer_ids) {
  memplan_ggml_begin();
  ggml_gallocr_alloc_graph_impl(galloc, graph, node_buffer_ids, leaf_buffer_ids);
  if (memplan_ggml_plan()) {
    for (int i = 0; i < galloc->n_buffers; ++i) ggml_dyn_tallocr_reset(galloc->buf_tallocs[i]);
    ggml_gallocr_alloc_graph_impl(galloc, graph, node_buffer_ids, leaf_buffer_ids);
  }
  memplan_ggml_end();
}

#define ggml_gallocr_alloc_graph_impl memplan_alloc_graph
