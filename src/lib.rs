//! The lease, retry and reaping protocol of TYPO3's `nr_llm` agent runs, as a native runtime.
