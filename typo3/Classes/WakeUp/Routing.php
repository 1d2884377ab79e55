<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\WakeUp;

use NrLlmRuntime\Typo3\DependencyInjection\ContainerFacts;
use NrLlmRuntime\Typo3\DependencyInjection\OverrideNrLlmServicesPass;
use NrLlmRuntime\Typo3\Settings\RuntimeSettings;

/**
 * Where nr_llm's message goes: the extension setting `transport`, else what TYPO3's routing names
 * for the message itself, else what it names for everything ('*').
 */
final class Routing
{
    public function __construct(private readonly ContainerFacts $facts, private readonly RuntimeSettings $settings) {}

    /**
     * The transports that a wake-up is sent to; empty where the routing names none and the message
     * is handled on the spot.
     *
     * @return list<string>
     */
    public function transports(): array
    {
        $configured = $this->settings->transport();
        if ($configured !== '') {
            return [$configured];
        }
        $own = $this->named(false);

        return $own !== [] ? $own : $this->named(true);
    }

    public function isConfigured(): bool
    {
        return $this->settings->transport() !== '';
    }

    /**
     * @return array{kind: string, queue: string, table: string}|null null: no such transport
     */
    public function sender(string $name): ?array
    {
        return $this->facts->senders()[$name] ?? null;
    }

    /**
     * Returns what is wrong with the names of the transports and the remedy, '' where all of them
     * are registered.
     */
    public function problem(): string
    {
        foreach ($this->transports() as $name) {
            if ($this->sender($name) === null) {
                return sprintf(
                    'The transport "%s" (%s) is not registered, so no wake-up can be sent and nothing is requeued. Registered are "%s". '
                    . 'Correct it in %s.',
                    $name,
                    $this->isConfigured() ? 'extension setting "transport"' : 'routing of nr_llm\'s message',
                    implode('", "', array_keys($this->facts->senders())),
                    $this->isConfigured() ? 'Admin Tools > Settings > Extension Configuration > nrllm_runtime'
                        : 'TYPO3_CONF_VARS[SYS][messenger][routing]',
                );
            }
        }

        return '';
    }

    /**
     * Returns whether a wake-up makes the run execute in the process that sends it.
     */
    public function isSynchronous(): bool
    {
        foreach ($this->transports() as $name) {
            if (($this->sender($name)['kind'] ?? '') === 'sync') {
                return true;
            }
        }

        return $this->transports() === [];
    }

    /**
     * TYPO3 13: '*' is not a fallback there. With a transport for the message and '*' on the
     * synchronous one, nr_llm's own dispatches go to both: the run executes at once in the
     * dispatching process, and is queued as well.
     *
     * @return string what is wrong and the remedy, or ''
     */
    public function trap(): string
    {
        $own = $this->named(false);
        $all = array_diff($this->named(true), $own);
        $inProcess = array_filter($all, fn(string $name): bool => ($this->sender($name)['kind'] ?? '') === 'sync');
        if ($own === [] || $inProcess === [] || $this->majorVersion() >= 14) {
            return '';
        }

        return sprintf(
            'The routing sends %s to "%s" and, by \'*\', to "%s" too: a run that nr_llm queues executes at once in the process that queues it, '
            . 'and the message for the worker finds nothing to do. Put unset($GLOBALS[\'TYPO3_CONF_VARS\'][\'SYS\'][\'messenger\'][\'routing\'][\'*\']); '
            . 'into config/system/additional.php and route other messages by name.',
            substr(strrchr(OverrideNrLlmServicesPass::MESSAGE, '\\') ?: '', 1),
            implode('", "', $own),
            implode('", "', $inProcess),
        );
    }

    /**
     * @return list<string>
     */
    private function named(bool $byWildcard): array
    {
        $routing = $GLOBALS['TYPO3_CONF_VARS']['SYS']['messenger']['routing'] ?? [];
        if (!is_array($routing)) {
            return [];
        }
        $names = [];
        foreach ($byWildcard ? ['*'] : $this->types() as $type) {
            // Since TYPO3 14 a wildcard is a fallback: it applies where nothing more specific does.
            if ($names !== [] && str_ends_with($type, '*') && $this->majorVersion() >= 14) {
                continue;
            }
            $targets = $routing[$type] ?? [];
            foreach (is_array($targets) ? $targets : [$targets] as $target) {
                if (is_string($target) && $target !== '' && !in_array($target, $names, true)) {
                    $names[] = $target;
                }
            }
        }

        return $names;
    }

    /**
     * The keys under which the routing may name the message, the most specific first; as the
     * messenger lists them.
     *
     * @return list<string>
     */
    private function types(): array
    {
        $class = OverrideNrLlmServicesPass::MESSAGE;
        $types = [$class];
        if (class_exists($class)) {
            $types = array_merge($types, array_values(class_parents($class)), array_values(class_implements($class)));
        }
        for ($namespace = $class; ($end = strrpos($namespace, '\\')) !== false;) {
            $namespace = substr($namespace, 0, $end);
            $types[] = $namespace . '\*';
        }

        return $types;
    }

    private function majorVersion(): int
    {
        return class_exists('TYPO3\CMS\Core\Information\Typo3Version') ? (new \TYPO3\CMS\Core\Information\Typo3Version())->getMajorVersion()
            : 13;
    }
}
