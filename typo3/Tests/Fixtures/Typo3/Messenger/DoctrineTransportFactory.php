<?php

declare(strict_types=1);

namespace TYPO3\CMS\Core\Messenger;

use Doctrine\DBAL\DriverManager;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\Connection;
use Symfony\Component\Messenger\Bridge\Doctrine\Transport\DoctrineTransport;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;

/**
 * Stands in for TYPO3's factory: a connection of its own from the settings of "Default", and
 * Symfony's real transport on it.
 */
final class DoctrineTransportFactory
{
    public function __construct(private readonly SerializerInterface $serializer) {}

    public function createTransport(array $options = []): DoctrineTransport
    {
        $settings = $GLOBALS['TYPO3_CONF_VARS']['DB']['Connections']['Default'];
        unset($settings['initCommands']);
        if (isset($settings['port'])) {
            $settings['port'] = (int)$settings['port'];
        }

        return new DoctrineTransport(new Connection(
            $options + ['table_name' => 'sys_messenger_messages', 'auto_setup' => false],
            DriverManager::getConnection($settings),
        ), $this->serializer);
    }
}
