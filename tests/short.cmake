# Lists what TIERD_SHORT omits to shorten ci/test: nearly every test then runs in one of the two builds, units
# under sanitizers, tests that start programs or compare bits without. ci/nightly runs all in both.

# Tests that run without sanitizers only:
set(TIERD_PLAIN_TESTS
  # Many combinations of what other tests have once: configurations, budgets, kernels, signals.
  e2e_lossless_test e2e_interruption_test e2e_budget_test e2e_digests_test e2e_stories_test e2e_activeflow_test
  e2e_sparsity_cli_test e2e_prune_cli_test e2e_planted_test e2e_block_encodings_test cuda_golden_test cuda_store_test
  # Programs that only start other programs, which would be compiled again and have nothing of their own to sanitize.
  e2e_readme_test e2e_install_test e2e_agent_author_test e2e_memory_limits_test e2e_programs_test e2e_bench_test
  e2e_tool_memory_test e2e_refusing_kernel_test
  e2e_store_cli_test e2e_trace_cli_test e2e_timeline_test e2e_speculation_test e2e_hub_test
  e2e_energy_test e2e_partition_cli_test e2e_reproduce_cli_test
  # They take 1.5 minutes there. The readers of the damaged stores are fuzzed as well (tests/fuzz), and have store_test.
  e2e_fault_test
  # Whole models in one process, which others run under sanitizers (golden models, tiers, plugins).
  e2e_gpu_test e2e_units_test e2e_hermes_test e2e_relu_before_qkv_test state_table_gate_test e2e_virtual_time_test e2e_run_energy_test e2e_mixture_test reference_test
  # Output of the command line. Its parser has command_line_test.
  e2e_cli_test e2e_configurations_test e2e_config_keys_test e2e_measured_loss_test e2e_plan_from_header_test e2e_bad_plugin_test
  # The laboratory, whose programs read their own files, and would compile a quarter more for a few seconds of tests.
  activity_test planted_test prune_test safetensors_writer_test synth_test tier_activity_test tier_partition_test
  # Reports of programs that other tests start.
  e2e_figure_names_test e2e_judge_test e2e_ratio_cli_test e2e_report_figures_test run_figures_test
  # Tools that read no untrusted input.
  tier_test tier_bench_test measurement_test tier_sweep_test plot_file_test tier_reproduce_test papers_test compare_test tier_profile_test train_test tier_train_test calibrate_test cost_model_test
  # Sixty plugins with one fault each, which end their process. The code that handles them has tests of its own.
  conformance_test agent_conformance_test
  # The rules of agents again, and a test that replaces madvise() and munmap(), as sanitizers do.
  direct_reads_test cuda_registered_test
  # More models in one process, as above.
  e2e_tiers_test e2e_editions_test e2e_compressed_test e2e_preloading_test e2e_lost_worker_test)

# Tests that run under sanitizers only: units, whose logic does not depend on optimisation, and the server. Tests of
# arithmetic and layouts run in both.
set(TIERD_SANITIZED_TESTS
  base_test agent_test system_test report_test strategy_test config_test run_test time_test energy_test engine_test
  session_test batcher_test null_agent_test kernel_test trace_test timeline_test tier_trace_test plugins_test dram_test
  ndp_test gpu_test cuda_kernels_test cuda_agent_test flash_test store_test formats_test model_test known_bugs_test
  http_test hub_test api_test pressure_relief_test tierd_test text_test tokenize_test command_line_test
  e2e_server_test e2e_chat_test e2e_reload_test
  # The interface of plugins, in one process.
  e2e_plugin_test e2e_plugin_tensors_test e2e_plugin_sequence_test)

foreach(test IN LISTS TIERD_PLAIN_TESTS)
  if(test IN_LIST TIERD_SANITIZED_TESTS)
    message(FATAL_ERROR "tests/short.cmake leaves ${test} out of both builds")
  endif()
endforeach()
