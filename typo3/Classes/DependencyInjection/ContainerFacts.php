<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\DependencyInjection;

/**
 * What the container's build found and did. It is kept in the container because an override that
 * did not take is otherwise silent.
 */
final class ContainerFacts
{
    /**
     * @param array<string, mixed> $facts see OverrideNrLlmServicesPass
     */
    public function __construct(private readonly array $facts) {}

    /**
     * Returns whether nr_llm's run repository was there.
     */
    public function hasNrLlm(): bool
    {
        return ($this->facts['nrLlm'] ?? false) === true;
    }

    public function reapIsOverridden(): bool
    {
        return ($this->facts['reap'] ?? '') === '';
    }

    /**
     * Returns why not; '' where it is.
     */
    public function reapProblem(): string
    {
        return $this->text('reap');
    }

    public function repositoryIsOverridden(): bool
    {
        return $this->hasNrLlm() && $this->repositoryProblem() === '';
    }

    public function repositoryProblem(): string
    {
        return $this->text('repository');
    }

    /**
     * Name of the status command: nr_llm's own name is left to nr_llm where it has such a command.
     */
    public function statusCommand(): string
    {
        return $this->text('statusCommand');
    }

    /**
     * The messenger senders by name.
     *
     * @return array<string, array{kind: string, queue: string, table: string}> kind: sync, doctrine
     *     (TYPO3's), other
     */
    public function senders(): array
    {
        $senders = [];
        foreach (is_array($this->facts['senders'] ?? null) ? $this->facts['senders'] : [] as $name => $sender) {
            $senders[(string)$name] = [
                'kind' => (string)($sender['kind'] ?? 'other'),
                'queue' => (string)($sender['queue'] ?? ''),
                'table' => (string)($sender['table'] ?? ''),
            ];
        }

        return $senders;
    }

    private function text(string $key): string
    {
        return is_string($this->facts[$key] ?? null) ? $this->facts[$key] : '';
    }
}
