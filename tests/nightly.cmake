# What ci/test leaves out under sanitizers, and ci/nightly runs there. Without sanitizers ci/test runs all of them.
set(TIERD_NIGHTLY_TESTS
  # Many combinations of what other tests have one of: configurations, budgets, kernels, signals.
  e2e_lossless_test e2e_interruption_test e2e_budget_test e2e_digests_test e2e_stories_test e2e_activeflow_test
  e2e_sparsity_cli_test e2e_planted_test e2e_k_quants_test cuda_golden_test
  # Programs that only start others, which are compiled once more and have nothing of their own to sanitize.
  e2e_readme_test e2e_install_test e2e_agent_author_test e2e_memory_limits_test e2e_programs_test e2e_bench_test
  e2e_trace_cli_test e2e_timeline_test e2e_speculation_test
  # Tools that read nothing from strangers.
  tier_bench_test compare_test tier_profile_test train_test tier_train_test calibrate_test cost_model_test
  # Sixty plugins with one fault each, which end their process; what they are held against has tests of its own.
  conformance_test agent_conformance_test)
