-- The tables that NrLlmRuntime works on, for programs without nr_llm. Where nr_llm is installed,
-- its own tables are used and nothing of this file is needed.

CREATE TABLE tx_nrllm_agentrun (
    uid int unsigned NOT NULL AUTO_INCREMENT,
    pid int unsigned NOT NULL DEFAULT 0,
    uuid varchar(36) NOT NULL DEFAULT '',
    status varchar(32) NOT NULL DEFAULT 'queued',
    configuration_uid int unsigned NOT NULL DEFAULT 0,
    configuration_identifier varchar(150) NOT NULL DEFAULT '',
    be_user int unsigned NOT NULL DEFAULT 0,
    iterations int unsigned NOT NULL DEFAULT 0,
    truncated smallint unsigned NOT NULL DEFAULT 0,
    total_prompt_tokens int unsigned NOT NULL DEFAULT 0,
    total_completion_tokens int unsigned NOT NULL DEFAULT 0,
    total_tokens int unsigned NOT NULL DEFAULT 0,
    estimated_cost decimal(10,6) NOT NULL DEFAULT 0.000000,
    error_class varchar(255) NOT NULL DEFAULT '',
    termination_reason varchar(32) NOT NULL DEFAULT '',
    suspended_state mediumtext,
    queued_request mediumtext,
    claimed_by varchar(64) NOT NULL DEFAULT '',
    lease_expires int unsigned NOT NULL DEFAULT 0,
    requeue_count int unsigned NOT NULL DEFAULT 0,
    pending_effect varchar(32) NOT NULL DEFAULT '',
    queued_at int unsigned NOT NULL DEFAULT 0,
    started_at int unsigned NOT NULL DEFAULT 0,
    finished_at int unsigned NOT NULL DEFAULT 0,
    tstamp int unsigned NOT NULL DEFAULT 0,
    crdate int unsigned NOT NULL DEFAULT 0,
    PRIMARY KEY (uid),
    KEY parent (pid),
    KEY run_uuid (uuid),
    KEY be_user (be_user, crdate),
    KEY status_lookup (status, crdate),
    KEY crdate (crdate)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- The messages of TYPO3's doctrine transport. Needed only for wake-ups (the option wakeUp).
CREATE TABLE sys_messenger_messages (
    id bigint NOT NULL AUTO_INCREMENT,
    body longtext NOT NULL,
    headers longtext NOT NULL,
    queue_name varchar(190) NOT NULL,
    created_at datetime NOT NULL,
    available_at datetime NOT NULL,
    delivered_at datetime DEFAULT NULL,
    PRIMARY KEY (id),
    KEY queue_name (queue_name),
    KEY available_at (available_at),
    KEY delivered_at (delivered_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
