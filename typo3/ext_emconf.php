<?php

// Read by TYPO3 in classic mode only; with Composer, composer.json counts.
$EM_CONF[$_EXTKEY] = [
    'title' => 'NrLlmRuntime for TYPO3',
    'description' => 'nr_llm\'s agent runs on the native lease runtime: reaper, background heartbeat, worker and status commands',
    'category' => 'services',
    'state' => 'beta',
    'version' => '0.1.0',
    'author' => 'The NrLlmRuntime authors',
    'constraints' => [
        'depends' => [
            'php' => '8.2.0-8.99.99',
            'typo3' => '13.4.0-14.99.99',
        ],
        'conflicts' => [
            'nr_llm' => '0.0.0-0.28.99',
        ],
        // Not a dependency: the package does nothing, and breaks nothing, where nr_llm is not
        // installed.
        'suggests' => [
            'nr_llm' => '',
        ],
    ],
];
