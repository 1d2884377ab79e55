<?php

/**
 * This process does not own the run, or no longer: another worker owns it, it was requeued, it is
 * gone or terminal, or the lease expired.
 */
final class NrLlmLeaseLostException extends NrLlmException {}
