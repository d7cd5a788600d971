// The door to everything about processes that is not a server. What is behind it is loaded when it is first used: most of those who import this package never do.
import type { Platform } from './platform.ts'
import type { Reaped } from './reap.ts'
import type { RunOptions, RunResult } from './run-command.ts'
import type { ProcessSpec, SpawnedProcess } from './spawner.ts'

/**
 * Starts a process: no shell, the short environment, a group of its own. Resolves when it runs.
 * @throws {WireError} `spawn-failed`, with the reason in words; nothing is left running then.
 */
export async function spawnProcess(platform: Platform, spec: ProcessSpec): Promise<SpawnedProcess> {
  return (await import('./spawner.ts')).spawnProcess(platform, spec)
}

/**
 * Runs a small program to its end and takes what it prints, for helpers that make headers. Its input is at its end; a bad exit code is a result, not an error.
 * @throws {WireError} `spawn-failed`; `too-large`, `timed-out` or `cancelled`, after which nothing of it is running.
 */
export async function runCommand(options: RunOptions): Promise<RunResult> {
  return (await import('./run-command.ts')).runCommand(options)
}

/**
 * Ends every process that a host which is no longer running has left, its grandchildren included, and says which. Never rejects. Takes up to 4 s when leftovers
 * ignore SIGTERM. On Linux all are found, whatever session they have moved to; on other Unix systems the recorded children and their groups; on Windows none.
 */
export async function reapLeftovers(leaseDirectory: string, platform?: Platform): Promise<readonly Reaped[]> {
  return (await import('./reap.ts')).reapLeftovers(leaseDirectory, platform)
}
