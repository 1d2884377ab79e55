<?php

declare(strict_types=1);

// Runs an action inside a booted TYPO3, and prints its answer as JSON: php inside.php SITE ACTION
// ARGUMENTS...

use TYPO3\CMS\Core\Core\Bootstrap;
use TYPO3\CMS\Core\Core\SystemEnvironmentBuilder;

$autoload = require $argv[1] . '/vendor/autoload.php';
SystemEnvironmentBuilder::run(0, SystemEnvironmentBuilder::REQUESTTYPE_CLI);
$container = Bootstrap::init($autoload);

/**
 * A private service, found in the objects that hold it.
 */
$find = static function (object $from, string $wanted, string $namespace, array &$seen = []) use (&$find): ?object {
    if (isset($seen[spl_object_id($from)])) {
        return null;
    }
    $seen[spl_object_id($from)] = $from;
    if (is_a($from, $wanted)) {
        return $from;
    }
    for ($class = new ReflectionClass($from); $class !== false; $class = $class->getParentClass()) {
        foreach ($class->getProperties() as $property) {
            $value = $property->isStatic() || !$property->isInitialized($from) ? null : $property->getValue($from);
            if (!is_object($value) || !(is_a($value, $wanted) || str_starts_with($value::class, $namespace))) {
                continue;
            }
            $found = $find($value, $wanted, $namespace, $seen);
            if ($found !== null) {
                return $found;
            }
        }
    }

    return null;
};
$runtime = $container->get('Netresearch\NrLlm\Service\Agent\AgentRuntimeInterface');
$runs = static fn(): object => $find($runtime, 'Netresearch\NrLlm\Service\Tool\AgentRunRepositoryInterface', 'Netresearch\\');
$actions = [
    'run-queued' => static fn(string $uuid): bool => $runtime->runQueued($uuid) !== null,
    'claim-and-block' => static function (string $uid) use ($runs): bool {
        $won = $runs()->claimQueued((int)$uid, 'worker:real:' . getmypid(), time() + 900);
        // Blocked in one call: no PHP code of this process runs meanwhile.
        shell_exec('sleep 30');

        return $won;
    },
    'other-owner' => static function (string $uid) use ($runs): array {
        $runs = $runs();
        $uid = (int)$uid;
        $expires = time() + 900;

        return [
            $runs->claimQueued($uid, 'worker:real:1', $expires), $runs->renewLease($uid, 'worker:other:1', $expires),
            $runs->markPendingEffect($uid, 'worker:other:1', 'non_idempotent_write', $expires), $runs->requeue($uid, 'worker:other:1'),
            $runs->renewLease($uid, 'worker:real:1', $expires),
        ];
    },
    // The labels of the extension settings, as the form in the backend shows them.
    'labels' => static function () use ($container): array {
        $GLOBALS['LANG'] = $container->get('TYPO3\CMS\Core\Localization\LanguageServiceFactory')->create('default');
        $file = dirname(__DIR__, 2) . '/ext_conf_template.txt';
        $tree = (new \TYPO3\CMS\Core\TypoScript\AST\CommentAwareAstBuilder($container->get(\Psr\EventDispatcher\EventDispatcherInterface::class)))->build(
            (new \TYPO3\CMS\Core\TypoScript\Tokenizer\LosslessTokenizer())->tokenize((string)file_get_contents($file)),
            new \TYPO3\CMS\Core\TypoScript\AST\Node\RootNode(),
        );
        $visitor = new \TYPO3\CMS\Core\TypoScript\AST\Visitor\AstConstantCommentVisitor();
        (new \TYPO3\CMS\Core\TypoScript\AST\Traverser\AstTraverser())->traverse($tree, [$visitor]);
        $shown = array_map(static fn(array $setting): string => (string)$setting['label'], $visitor->getConstants());
        preg_match_all('/; label=(.+)\n(\w+) =/', (string)file_get_contents($file), $written);

        return [$shown, array_combine($written[2], $written[1])];
    },
    // Titles and levels of the status report, the lines of the widget; null where the system
    // extension is not installed.
    'backend' => static function () use ($container): array {
        $report = $lines = null;
        $GLOBALS['LANG'] = $container->get('TYPO3\CMS\Core\Localization\LanguageServiceFactory')->create('default');
        if (class_exists('TYPO3\CMS\Reports\Status')) {
            foreach ($container->get('NrLlmRuntime\Typo3\Reports\AgentRunStatusProvider')->getStatus() as $status) {
                $report[$status->getTitle()] = $status->getValue();
            }
        }
        if (class_exists('TYPO3\CMS\Dashboard\WidgetRegistry')) {
            $widget = $container->get('nrllm_runtime.dashboard.agent_runs');
            $lines = (new ReflectionProperty('TYPO3\CMS\Dashboard\Widgets\ListWidget', 'dataProvider'))->getValue($widget)->getItems();
        }

        return [class_exists('TYPO3\CMS\Reports\Status'), $report, class_exists('TYPO3\CMS\Dashboard\WidgetRegistry'), $lines];
    },
];
echo json_encode($actions[$argv[2]](...array_slice($argv, 3))), "\n";
