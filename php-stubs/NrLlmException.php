<?php

/**
 * The base of every exception of the runtime. A wrong argument is no such exception: it is a TypeError or a ValueError, thrown before
 * anything is sent to the server.
 */
class NrLlmException extends RuntimeException {}
