<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Messenger;

use Symfony\Component\DependencyInjection\ServiceLocator;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\Transport\Sender\SendersLocatorInterface;

/**
 * Stands in for TYPO3 13's locator: '*' is no fallback, it adds to what the message's own entry
 * names.
 */
class TransportLocator implements SendersLocatorInterface
{
    public function __construct(private readonly ServiceLocator $senders) {}

    public function getSenders(Envelope $envelope): iterable
    {
        $stamp = 'Symfony\Component\Messenger\Stamp\TransportNamesStamp';
        $names = [];
        if (class_exists($stamp) && $envelope->last($stamp) !== null) {
            $names = $envelope->last($stamp)->getTransportNames();
        } else {
            foreach (HandlersLocator::listTypes($envelope) as $type) {
                $names = array_merge($names, (array)($GLOBALS['TYPO3_CONF_VARS']['SYS']['messenger']['routing'][$type] ?? []));
            }
        }
        foreach (array_unique($names) as $name) {
            if (!$this->senders->has($name)) {
                throw new \RuntimeException(sprintf('Invalid senders configuration: sender "%s" is not registered.', $name));
            }
            yield $name => $this->senders->get($name);
        }
    }
}
