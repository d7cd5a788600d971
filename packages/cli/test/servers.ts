// Servers for the command's tests, as entries of a configuration file.

import { readFile } from 'node:fs/promises'
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

/** How many scripted servers with this log have been started. */
export async function startsIn(log: string): Promise<number> {
  const text = await readFile(log, 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line.includes('"start"')).length
}
