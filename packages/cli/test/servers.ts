// Servers for the command's tests, as entries of a configuration file.

import { type Launch, type StdioScript, scriptedStdio } from '@convoke/testkit'

/** An entry of `mcpServers`. */
export type Entry = Readonly<Record<string, unknown>>

/** A launch description as an entry. */
export function entryOf({ command, args, env }: Launch): Entry {
  return { command, args, ...(env === undefined ? {} : { env }) }
}

/** A scripted server as an entry. */
export function scripted(script: StdioScript = {}): Entry {
  return entryOf(scriptedStdio(script))
}
