// The file with the key of a sealed store. It does not lie next to what it opens: whoever copies one folder has not copied both.
import { StoreError } from './key-value-store.ts'
import type { StorePlatform } from './platform.ts'
import { distrustFile, prepareDirectory, removeLeftovers } from './trusted-files.ts'

/** The size of a key. */
export const SEALING_KEY_BYTES = 32

/** Which file it is. */
export interface SealingKeyOptions {
  readonly platform: StorePlatform
  /** Its directory is made with mode 0700 when it is not there. */
  readonly path: string
}

/**
 * Reads the key, or makes one when there is none; several processes at once end with one key. Nothing that is there is ever replaced: what was
 * sealed with it would be lost.
 * @throws {StoreError} `failed` for a file that is not used, and says why.
 */
export async function openSealingKey({ platform, path }: SealingKeyOptions): Promise<Uint8Array> {
  const failed = (because: string, cause?: unknown): StoreError =>
    new StoreError('failed', `${path} is not used as a key: ${because}`, cause === undefined ? {} : { cause })
  try {
    const because = await prepareDirectory(platform, folderOf(path))
    if (because !== undefined) throw failed(`its folder: ${because}`)
    return (await readKey(platform, path, failed)) ?? (await makeKey(platform, path, failed))
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw failed((error as NodeJS.ErrnoException).code ?? 'unknown', error)
  }
}

type Failed = (because: string, cause?: unknown) => StoreError

async function readKey(platform: StorePlatform, path: string, failed: Failed): Promise<Uint8Array | undefined> {
  const facts = await platform.files.inspect(path)
  if (facts === undefined) return undefined
  const because = distrustFile(platform, facts)
  if (because !== undefined) throw failed(because)
  if (facts.bytes !== SEALING_KEY_BYTES) throw failed(`it has ${facts.bytes} bytes, not ${SEALING_KEY_BYTES}`)
  const key = await platform.files.read(path, SEALING_KEY_BYTES)
  if (key.length !== SEALING_KEY_BYTES) throw failed('it changed while it was read')
  return key
}

async function makeKey(platform: StorePlatform, path: string, failed: Failed): Promise<Uint8Array> {
  const folder = folderOf(path)
  const names = await platform.files.list(folder)
  await removeLeftovers(
    platform,
    folder,
    names.filter((name) => name.startsWith(`${path.slice(folder.length + 1)}.`)),
  )
  const key = platform.randomBytes(SEALING_KEY_BYTES)
  try {
    await platform.files.writeAtomic(path, key, { onlyNew: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  // What counts is what is there, whoever has put it there.
  const kept = await readKey(platform, path, failed)
  if (kept === undefined) throw failed('it was there, and is gone')
  return kept
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')))
}
