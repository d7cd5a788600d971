import type { Terminal } from './terminal.ts'

/** The options that every command takes. */
export interface GlobalOptions {
  /** A configuration file on top of the user's own. */
  readonly config?: string
  /** Where state and cache lie in place of the usual folders. */
  readonly dataDir?: string
  readonly json: boolean
  /** Longest wait for servers to settle, in milliseconds. Default 30 000. */
  readonly wait: number
  /** Only these servers; empty means all. */
  readonly server: readonly string[]
  /** A listing that not every server answered ends with exit code 3. */
  readonly strict: boolean
}

/** What a command runs in. */
export interface CommandContext {
  readonly options: GlobalOptions
  readonly terminal: Terminal
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborts when the person or the system ends the command. */
  readonly signal: AbortSignal
}

/** Version of the JSON answers. A change that breaks a reader raises it. */
export const JSON_VERSION = 1
