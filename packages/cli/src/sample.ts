// The servers that `convoke serve` shows when nothing is configured: real ones, in a temporary folder, gone afterwards.

import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineServer, type ServerDefinition } from '@convoke/host'
import { CommandError } from './command-error.ts'
import { EXIT } from './exit-codes.ts'

/** The sample set and the folder it works in; disposing removes the folder. */
export interface Sample extends AsyncDisposable {
  readonly definitions: readonly ServerDefinition[]
  /** Folder that the file server offers. */
  readonly folder: string
}

const FOLDER_PREFIX = 'convoke-sample-'

/**
 * Makes the sample set: server-everything, server-filesystem on a folder with a few texts, server-memory with its file beside it.
 * Folders that a run left which was ended by force are removed first.
 *
 * @throws {CommandError} exit code 4 when the sample servers are not installed.
 */
export async function makeSample(): Promise<Sample> {
  const entries = sampleServers()
  await removeAbandoned()
  const root = await mkdtemp(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`))
  const folder = join(root, 'files')
  await mkdir(folder)
  for (const [name, text] of FILES) await writeFile(join(folder, name), text)
  const stdio = (name: string, args: readonly string[], env: Record<string, string> = {}): ServerDefinition =>
    defineServer({
      name,
      source: { layer: 'sample' },
      transport: { kind: 'stdio', command: process.execPath, args, env, envVars: [], cwd: root },
    })
  return {
    folder,
    definitions: [
      stdio('everything', [entries.everything, 'stdio']),
      stdio('files', [entries.filesystem, folder]),
      stdio('memory', [entries.memory], { MEMORY_FILE_PATH: join(root, 'memory.json') }),
    ],
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 3 }),
  }
}

function sampleServers(): Record<'everything' | 'filesystem' | 'memory', string> {
  const { resolve } = createRequire(import.meta.url)
  try {
    const entry = (name: string): string => resolve(`@modelcontextprotocol/server-${name}/dist/index.js`)
    return { everything: entry('everything'), filesystem: entry('filesystem'), memory: entry('memory') }
  } catch {
    const text =
      'No server is configured, and the sample servers are not installed beside convoke. Add a server: convoke add NAME -- COMMAND ARGS'
    throw new CommandError(EXIT.configuration, 'SAMPLE_MISSING', text)
  }
}

const FILES: readonly (readonly [string, string])[] = [
  ['welcome.md', '# Welcome\n\nThis folder is a sample. It is removed when `convoke serve` ends.\n'],
  ['shopping.txt', 'bread\nbutter\ncoffee\n'],
  ['meeting.md', '# Meeting, Monday\n\n- Ada will compare the two plans.\n- Next meeting on Thursday at ten.\n'],
]

/** The folders of runs whose process is gone. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {})
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
