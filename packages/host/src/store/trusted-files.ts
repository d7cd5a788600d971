// What is used of the disk: what belongs to the user of the host, and to nobody else. Nothing is repaired, a refusal says why.
import type { StoredFileFacts, StorePlatform } from './platform.ts'

const OTHERS = 0o077
/** What ended between writing a file and naming it is left alone for so long: the process may be one that cannot be seen from here. */
const LEFTOVER_AGE_MS = 10_000
/** A file that is being written, as the platform names it: process and count. */
const TEMPORARY = /\.(\d+)\.\d+\.tmp$/

/** Why a file is not used; undefined: it is. */
export function distrustFile(platform: StorePlatform, facts: StoredFileFacts): string | undefined {
  if (facts.kind !== 'file') return facts.kind === 'link' ? 'it is a link' : 'it is no regular file'
  return distrustOwner(platform, facts)
}

/** Makes a directory that is ours alone, with its parents. @returns why it is not used. */
export async function prepareDirectory(platform: StorePlatform, directory: string): Promise<string | undefined> {
  await platform.files.makeDirectory(directory)
  const facts = await platform.files.inspect(directory)
  return facts?.kind === 'directory' ? distrustOwner(platform, facts) : 'it is no directory, or a link to one'
}

/**
 * Removes what processes that are no more left half written: it may hold secrets. Nothing else is touched. A file whose process may still run stays, however
 * old it looks: clocks jump, and whoever is writing it would lose what it writes.
 */
export async function removeLeftovers(
  platform: StorePlatform,
  directory: string,
  names: readonly string[],
): Promise<void> {
  for (const name of names) {
    const pid = TEMPORARY.exec(name)?.[1]
    if (pid === undefined) continue
    if (platform.kill(Number(pid), 0, 'process')) continue
    const facts = await platform.files.inspect(`${directory}/${name}`)
    if (facts?.kind !== 'file') continue
    if (platform.dateMs() - facts.modifiedAtMs > LEFTOVER_AGE_MS) await platform.files.remove(`${directory}/${name}`)
  }
}

function distrustOwner({ os, userId }: StorePlatform, { ownerId, mode }: StoredFileFacts): string | undefined {
  if (os === 'win32' || userId === -1) return undefined // no such bits there
  if (ownerId !== userId) return 'it belongs to another user'
  return (mode & OTHERS) === 0 ? undefined : 'other users have access to it'
}
