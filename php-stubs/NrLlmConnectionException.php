<?php

/**
 * The server could not be reached, the connection was lost, or a time limit passed. When the
 * message says `outcome unknown`, the reply to a write was lost and the row could not be read back.
 */
final class NrLlmConnectionException extends NrLlmException {}
