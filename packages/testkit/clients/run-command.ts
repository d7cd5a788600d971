// Runs a client in a home folder of its own, with a time limit; its whole process group ends with it.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { endGroup, endWithUs } from '../src/end-with-us.ts'

const COMMAND_TIMEOUT_MS = 120_000
const OUTPUT_CHARS_MAX = 400_000

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A temporary HOME with a working folder in it. */
export interface Home extends AsyncDisposable {
  readonly path: string
  readonly work: string
}

export async function openHome(): Promise<Home> {
  const path = await mkdtemp(join(tmpdir(), 'convoke-client-'))
  const work = join(path, 'work')
  await mkdir(work)
  return {
    path,
    work,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 5 }),
  }
}

/** Runs to the end, or for two minutes. stdin is empty. */
export function runCommand(
  command: string,
  args: readonly string[],
  home: Home,
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: home.work,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
        HOME: home.path,
        TMPDIR: home.path,
        LANG: 'C.UTF-8',
        NO_COLOR: '1',
        CI: '1',
        DO_NOT_TRACK: '1',
        ...env,
      },
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (part: Buffer) => {
        output[name] = (output[name] + part.toString()).slice(-OUTPUT_CHARS_MAX)
      })
    }
    const end = (): void => endGroup(child.pid)
    const release = endWithUs(end)
    const timer = setTimeout(() => {
      output.stderr += `\nstopped after ${COMMAND_TIMEOUT_MS} ms`
      end()
    }, COMMAND_TIMEOUT_MS)
    child.once('error', (error) => {
      output.stderr += String(error)
    })
    child.once('exit', end)
    child.once('close', (code) => {
      clearTimeout(timer)
      release()
      resolve({ ...output, code })
    })
  })
}
