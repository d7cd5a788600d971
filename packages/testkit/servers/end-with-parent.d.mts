/** Ends this process on SIGTERM, and soon after the process that started it has ended in any way. */
export function endWithParent(): void
