# The reaper's listing, WHERE status = 'running' AND lease_expires BETWEEN 1 AND now, by a key
# instead of a scan over all running runs. Only the key: the columns are nr_llm's, and stay nr_llm's
# to change. Where nr_llm is not installed a listener takes this statement out again
# (Classes/EventListener/OfferKeyOnlyToExistingTable.php), so that no table of two columns is ever
# made from it.
CREATE TABLE tx_nrllm_agentrun (
    KEY nrllm_runtime_lease (status, lease_expires)
);
