<?php

/**
 * The lease is not, or no longer, this process's: another owner has the run, it was requeued, it is gone or finished, or the lease ran out.
 */
final class NrLlmLeaseLostException extends NrLlmException {}
