// What is known from earlier starts of the same server: the era it speaks, and that its launch works. Remembered in memory and, with a
// cache directory, in one small file per server.
import { type EraVerdict, LEGACY_VERSIONS, MODERN_VERSION, type Platform } from '@convoke/wire'
import { BoundedMap, canonicalJson, fingerprint, isObject } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'

const ENTRIES_MAX = 1_024
const FILE_BYTES_MAX = 1_024
/** Files in the directory; when there are more, the oldest half is removed at the next write. */
const FILES_MAX = 1_024
const FOLDER = 'launches'

/** Remembers, per way of launching a server, which era it spoke when it last started. */
export class LaunchMemory {
  readonly #verdicts = new BoundedMap<string, EraVerdict>(ENTRIES_MAX)
  readonly #platform: Platform
  readonly #folder: string | undefined
  #writing: Promise<void> = Promise.resolve()

  /** @param cacheDirectory Undefined: only in memory. */
  constructor(platform: Platform, cacheDirectory: string | undefined) {
    this.#platform = platform
    this.#folder = cacheDirectory === undefined ? undefined : `${cacheDirectory}/${FOLDER}`
  }

  /** The verdict of the last good start; undefined if this launch has never succeeded. Unreadable files count as absent. */
  async recall(definition: ServerDefinition): Promise<EraVerdict | undefined> {
    const key = launchKey(definition)
    const known = this.#verdicts.get(key)
    if (known !== undefined || this.#folder === undefined) return known
    const verdict = await this.#read(key)
    if (verdict !== undefined) this.#verdicts.set(key, verdict)
    return verdict
  }

  /** Notes a good start. Writing happens behind; `flush` waits for it. */
  remember(definition: ServerDefinition, verdict: EraVerdict): void {
    const key = launchKey(definition)
    const known = this.#verdicts.get(key)
    if (known?.era === verdict.era && known.version === verdict.version) return
    this.#verdicts.set(key, verdict)
    this.#write((folder) => this.#save(folder, key, verdict))
  }

  /** What was remembered proved wrong. */
  forget(definition: ServerDefinition): void {
    const key = launchKey(definition)
    this.#verdicts.delete(key)
    this.#write((folder) => this.#platform.files.remove(this.#path(folder, key)))
  }

  /** Resolves when everything noted so far is on disk, or could not be written. Never rejects. */
  flush(): Promise<void> {
    return this.#writing
  }

  #write(task: (folder: string) => Promise<void>): void {
    const folder = this.#folder
    if (folder === undefined) return
    // A cache that cannot be written is no failure: the next start asks again.
    this.#writing = this.#writing.then(() => task(folder)).catch(() => {})
  }

  async #save(folder: string, key: string, verdict: EraVerdict): Promise<void> {
    const { files } = this.#platform
    await files.makeDirectory(folder)
    await this.#makeRoom(folder)
    await files.writeAtomic(
      this.#path(folder, key),
      JSON.stringify({ version: 1, era: verdict.era, spoken: verdict.version }),
      { durable: false }, // what a power cut takes is asked for again
    )
  }

  async #makeRoom(folder: string): Promise<void> {
    const { files } = this.#platform
    const names = (await files.list(folder)).filter((name) => name.endsWith('.json'))
    if (names.length < FILES_MAX) return
    const aged = await Promise.all(
      names.map(async (name) => ({ name, atMs: (await files.inspect(`${folder}/${name}`))?.modifiedAtMs ?? 0 })),
    )
    aged.sort((a, b) => a.atMs - b.atMs)
    for (const { name } of aged.slice(0, names.length - FILES_MAX / 2)) await files.remove(`${folder}/${name}`)
  }

  async #read(key: string): Promise<EraVerdict | undefined> {
    const folder = this.#folder
    if (folder === undefined) return undefined
    try {
      const text = await this.#platform.files.read(this.#path(folder, key), FILE_BYTES_MAX)
      return verdictIn(JSON.parse(text.toString('utf8')))
    } catch {
      return undefined
    }
  }

  #path(folder: string, key: string): string {
    return `${folder}/${key}.json`
  }
}

function verdictIn(value: unknown): EraVerdict | undefined {
  if (!isObject(value) || value['version'] !== 1) return undefined
  const { era, spoken } = value
  if (era === 'modern' && spoken === MODERN_VERSION) return { era, version: MODERN_VERSION }
  return era === 'legacy' && typeof spoken === 'string' && LEGACY_VERSIONS.includes(spoken)
    ? { era, version: spoken }
    : undefined
}

/**
 * Equal for launches that start the same thing. Values of variables and headers are left out: they do not change what a server speaks,
 * and a digest of them would be something to guess at. Two launches of one key cost no more than a question for the era.
 */
export function launchKey({ transport }: ServerDefinition): string {
  const what =
    transport.kind === 'stdio'
      ? [
          'stdio',
          transport.command,
          transport.args,
          transport.cwd,
          Object.keys(transport.env).sort(),
          transport.envVars,
        ]
      : ['http', transport.url, transport.transport ?? 'auto']
  return fingerprint(canonicalJson(what))
}
