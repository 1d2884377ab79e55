<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

/**
 * Stands in for nr_llm's repository. What it does is in the trait, so that the variants of the
 * interface share it.
 */
final readonly class AgentRunRepository implements AgentRunRepositoryInterface
{
    use RunTableTrait;
}
