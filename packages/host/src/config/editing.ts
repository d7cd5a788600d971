// The door to changes of configuration files. What is behind it is loaded when it is first used: hosts only read.
import type { JsonObject } from '../base/index.ts'
import type { AddServerOptions } from './edit.ts'

export type { AddServerOptions }

/**
 * Writes `entry` under `name`. A missing file is made (mode 0600, its folder 0700). The change is atomic: a reader sees the old
 * file or the new one.
 *
 * @throws {HostError} `ALREADY_DEFINED` when the name is taken; `CONFIG_PROBLEM` when the name cannot be used, the file is damaged
 * or cannot be written, or somebody else keeps changing it.
 * @example
 * await addServer('/home/me/.config/convoke/convoke.json', 'files', { command: 'files-server', args: ['/srv'] })
 */
export async function addServer(
  file: string,
  name: string,
  entry: JsonObject,
  options: AddServerOptions = {},
): Promise<void> {
  await (await import('./edit.ts')).addServer(file, name, entry, options)
}

/**
 * Removes the entry of that name, with every repeat of it. Gives `false` when there is none (or no file), and changes nothing then.
 *
 * @throws {HostError} `CONFIG_PROBLEM` when the file is damaged or cannot be written, or somebody else keeps changing it.
 */
export async function removeServer(file: string, name: string): Promise<boolean> {
  return (await import('./edit.ts')).removeServer(file, name)
}
