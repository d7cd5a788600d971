// Runs the built command as a shell would, in a home of its own.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { vi } from 'vitest'

// A test here starts many processes, and the machine may be busy with others.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const root = resolve(import.meta.dirname, '../../..')
/** The command as it is installed. */
export const BIN: string = join(root, 'packages/cli/bin/convoke.js')

/** Builds the command's files, unless they are newer than every source they are made of. */
export async function buildCommand(): Promise<void> {
  const built = await Promise.all(
    ['convoke.cjs', 'serve.cjs', 'prompts.cjs', 'keyring-program.js'].map((name) =>
      mtimeMs(join(root, 'packages/cli/dist', name)),
    ),
  )
  const sources = ['cli/src', 'cli/scripts', 'host/src', 'wire/src', 'gateway/src'].map((path) =>
    join(root, 'packages', path),
  )
  const newest = Math.max(...(await Promise.all(sources.map(newestMs))))
  if (Math.min(...built) > newest) return
  const script = join(root, 'packages/cli/scripts/bundle.ts')
  const { status, stderr } = spawnSync(process.execPath, ['--conditions=@convoke/source', script], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`the command could not be built: ${stderr}`)
}

async function mtimeMs(path: string): Promise<number> {
  return stat(path).then(
    (found) => found.mtimeMs,
    () => 0,
  )
}

async function newestMs(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true })
  return Math.max(0, ...(await Promise.all(names.map((name) => mtimeMs(join(folder, name))))))
}

/** How a run of the command ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** How a run is started. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** What stdin holds; `/dev/null` when absent. */
  readonly stdin?: string
  readonly cwd?: string
  /** Ends a run that hangs, in milliseconds. Default 60 000. */
  readonly timeoutMs?: number
}

/** A running command. */
export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Resolves when `pattern` has come on stdout or stderr; rejects when the command ends before. */
  seen(pattern: RegExp): Promise<RegExpExecArray>
}

/** A home folder with its own configuration, state and cache; disposing removes it. */
export class Home implements AsyncDisposable {
  readonly folder: string
  readonly env: Readonly<Record<string, string>>

  private constructor(folder: string) {
    this.folder = folder
    this.env = {
      PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}`,
      HOME: folder,
      XDG_CONFIG_HOME: join(folder, 'config'),
      XDG_STATE_HOME: join(folder, 'state'),
      XDG_CACHE_HOME: join(folder, 'cache'),
      TMPDIR: tmpdir(),
    }
  }

  static async make(): Promise<Home> {
    await buildCommand()
    return new Home(await mkdtemp(join(tmpdir(), 'convoke-home-')))
  }

  get configFile(): string {
    return join(this.folder, 'config/convoke/convoke.json')
  }

  /** Writes the user's own configuration, as servers or as text. */
  async configure(servers: Readonly<Record<string, unknown>> | string): Promise<void> {
    await mkdir(join(this.folder, 'config/convoke'), { recursive: true })
    await writeFile(
      this.configFile,
      typeof servers === 'string' ? servers : JSON.stringify({ mcpServers: servers }, null, 2),
    )
  }

  async configText(): Promise<string> {
    return readFile(this.configFile, 'utf8')
  }

  start(words: readonly string[], options: RunOptions = {}): Running {
    return this.startProgram(process.execPath, [BIN, ...words], options)
  }

  /** Runs the command and waits for its end. */
  run(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
    return this.start(words, options).ended
  }

  /** Runs it with --json and reads the answer. */
  async json(
    words: readonly string[],
    options: RunOptions = {},
  ): Promise<{ code: number | null; answer: unknown; stderr: string }> {
    const { code, stdout, stderr } = await this.run([...words, '--json'], options)
    return { code, answer: JSON.parse(stdout), stderr }
  }

  /** Runs it with a pipe as stdin that stays open: `child.stdin` writes to it. */
  startPiped(words: readonly string[], options: RunOptions = {}): Running {
    return this.startProgram(process.execPath, [BIN, ...words], { stdin: '', ...options }, true)
  }

  /** Runs it on a terminal of its own; `type` is sent as if typed. */
  startOnTerminal(words: readonly string[], options: RunOptions = {}): Running {
    const line = [process.execPath, BIN, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    return this.startProgram(
      'script',
      ['-qefc', `stty cols 120 rows 40; exec ${line}`, '/dev/null'],
      { ...options, stdin: options.stdin ?? '' },
      true,
    )
  }

  startProgram(program: string, args: readonly string[], options: RunOptions = {}, keepsStdin = false): Running {
    const child = spawn(program, args, {
      cwd: options.cwd ?? this.folder,
      env: { ...this.env, ...options.env },
      stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    if (options.stdin !== undefined && options.stdin !== '') child.stdin?.write(options.stdin)
    if (!keepsStdin) child.stdin?.end()
    return follow(child, options.timeoutMs ?? 60_000)
  }

  /** Every process that was started with this home as its HOME, whoever started it, and is no zombie. */
  async processes(): Promise<{ readonly pid: number; readonly command: string }[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
    const found = await Promise.all(
      pids.map(async (pid) => {
        const [environ, cmdline] = await Promise.all(
          ['environ', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
        )
        const isOurs = environ?.split('\0').includes(`HOME=${this.folder}`) === true && cmdline !== ''
        return isOurs ? [{ pid: Number(pid), command: cmdline?.replaceAll('\0', ' ') ?? '' }] : []
      }),
    )
    return found.flat()
  }

  /** Resolves when none of its processes is left; rejects after `limitMs` with those that are. */
  async whenQuiet(limitMs = 8_000): Promise<void> {
    const endAtMs = performance.now() + limitMs
    for (;;) {
      const left = await this.processes()
      if (left.length === 0) return
      if (performance.now() > endAtMs) throw new Error(`still running: ${JSON.stringify(left)}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function follow(child: ChildProcess, timeoutMs: number): Running {
  let stdout = ''
  let stderr = ''
  const waiting = new Set<() => void>()
  const wake = (): void => {
    for (const look of waiting) look()
  }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    wake()
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    wake()
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, stdout, stderr })
    })
  })
  const seen = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(stdout) ?? pattern.exec(stderr)
        if (found === null) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
      void ended.then(() => reject(new Error(`${String(pattern)} never came:\n${stdout}\n${stderr}`)))
    })
  return { child, ended, seen }
}
