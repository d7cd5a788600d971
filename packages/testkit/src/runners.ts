// Starts real servers for tests: as launch descriptions (stdio; the client under test starts the process) or running (HTTP), to be held by `await using`.
import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type ScriptedHttpServer, startScriptedHttp as startInProcess } from '../servers/scripted-http.mjs'
import { endWithUs } from './end-with-us.ts'
import type { HttpScript, StdioScript } from './script.ts'

/** How to start a stdio server; fits a stdio target and an entry of a configuration file. */
export interface Launch {
  readonly kind: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A server in a process of its own that answers at `url`. */
export interface RunningServer extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  /** The last 4,000 characters that it wrote to stderr. */
  readonly stderrTail: string
  /** Resolves when the process has ended, whoever ended it. */
  readonly exited: Promise<void>
}

const READY_TIMEOUT_MS = 30_000
const CLOSE_TIMEOUT_MS = 3_000
const STDERR_CHARS_MAX = 4_000
const require = createRequire(import.meta.url)

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const node = (file: string, ...args: readonly string[]): Launch => ({
  kind: 'stdio',
  command: process.execPath,
  args: [file, ...args],
})
const entryOf = (name: string): string => require.resolve(`@modelcontextprotocol/${name}/dist/index.js`)

/** A stdio server that behaves as the script says. */
export function scriptedStdio(script: StdioScript = {}): Launch {
  return node(here('servers/scripted-stdio.mjs'), JSON.stringify(script))
}

/** A streamable HTTP server in this process, with its request log and its inside at hand. */
export function startScriptedHttp(script: HttpScript = {}): Promise<ScriptedHttpServer> {
  return startInProcess(script)
}

/** The same in a process of its own, which can be killed. */
export function startScriptedHttpProcess(script: HttpScript = {}): Promise<RunningServer> {
  return startServer([here('servers/scripted-http.mjs'), JSON.stringify(script)])
}

/** A small server on SDK v1: `echo`, `add` (structured), `ask` (elicitation), `steps` (progress), a resource, a template, a prompt. */
export function sdk1Stdio(): Launch {
  return node(here('servers/sdk1-stdio.ts'))
}

export interface Sdk1HttpOptions {
  /** Default `stateful`. */
  readonly sessions?: 'stateful' | 'stateless'
  /** Default `sse`, as the SDK's own. */
  readonly answers?: 'json' | 'sse'
}

/** The same over HTTP. */
export function startSdk1Http({
  sessions = 'stateful',
  answers = 'sse',
}: Sdk1HttpOptions = {}): Promise<RunningServer> {
  return startServer([here('servers/sdk1-http.ts'), '--sessions', sessions, '--answers', answers])
}

/** The conformance fixture on SDK v2, over stdio. Default: it serves both eras. */
export function sdk2Stdio({ era = 'both' }: { readonly era?: 'both' | 'modern' } = {}): Launch {
  return node(here('servers/sdk2-stdio.ts'), '--era', era)
}

export interface Sdk2HttpOptions {
  /** `both` (default): 2026-07-28 and the session era. `modern`: the session era is refused. */
  readonly era?: 'both' | 'modern'
  /** How clients of the session era are served. Default `stateful`. */
  readonly sessions?: 'stateful' | 'none'
}

/** The conformance fixture on SDK v2, over HTTP. */
export function startSdk2Http({ era = 'both', sessions = 'stateful' }: Sdk2HttpOptions = {}): Promise<RunningServer> {
  return startServer([here('conformance/fixture-server.ts'), '--era', era, '--sessions', sessions])
}

/** `@modelcontextprotocol/server-everything`, which knows every feature of the session era. */
export function everythingStdio(): Launch {
  return node(entryOf('server-everything'), 'stdio')
}

/** The same over HTTP (`streamableHttp`), or over the older HTTP+SSE (`sse`). */
export async function startEverythingHttp(
  transport: 'streamableHttp' | 'sse' = 'streamableHttp',
): Promise<RunningServer> {
  const port = await freePort()
  return startServer([entryOf('server-everything'), transport], {
    env: { PORT: String(port) },
    ready: /listening on port|running on port/i,
    url: `http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`,
  })
}

/** `@modelcontextprotocol/server-filesystem` on one folder. */
export function filesystemStdio(folder: string): Launch {
  return node(entryOf('server-filesystem'), folder)
}

/** `@modelcontextprotocol/server-memory`, with its graph in `file`. */
export function memoryStdio(file: string): Launch {
  return { ...node(entryOf('server-memory')), env: { MEMORY_FILE_PATH: file } }
}

/** How {@link startServer} knows that a server answers. */
export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>
  /** On stdout or stderr. Default: a line `READY PORT`, which also tells the address. */
  readonly ready?: RegExp
  /** The address, where the line does not tell it. */
  readonly url?: string
  /** From SIGTERM to SIGKILL. Default 3,000. */
  readonly closeTimeoutMs?: number
}

/**
 * Runs `node ARGS` until it is disposed of (SIGTERM, then SIGKILL) or this process exits.
 * @throws {Error} with what it wrote to stderr, if it ends or is not ready within 30 s; nothing is left running then.
 */
export async function startServer(args: readonly string[], options: StartOptions = {}): Promise<RunningServer> {
  const { ready = /^READY (\d+)$/m, url, env, closeTimeoutMs = CLOSE_TIMEOUT_MS } = options
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  const server = new ServerProcess(child, closeTimeoutMs)
  try {
    const match = await server.whenPrinted(ready)
    server.url = url ?? `http://127.0.0.1:${match[1]}/mcp`
    return server
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

class ServerProcess implements RunningServer {
  url = ''
  stderrTail = ''
  readonly exited: Promise<void>
  readonly #child: ChildProcess
  readonly #closeTimeoutMs: number
  #text = ''
  #onText: (() => void) | undefined

  constructor(child: ChildProcess, closeTimeoutMs: number) {
    this.#child = child
    this.#closeTimeoutMs = closeTimeoutMs
    const release = endWithUs(() => child.kill('SIGTERM'))
    this.exited = new Promise((resolve) => {
      const settle = (): void => {
        release()
        resolve()
      }
      child.once('close', settle)
      child.once('error', settle)
    })
    child.stdout?.on('data', (part: Buffer) => this.#take(part.toString()))
    child.stderr?.on('data', (part: Buffer) => {
      this.stderrTail = (this.stderrTail + part.toString()).slice(-STDERR_CHARS_MAX)
      this.#take(part.toString())
    })
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  #take(text: string): void {
    if (this.#onText === undefined && this.url !== '') return
    this.#text = (this.#text + text).slice(-STDERR_CHARS_MAX)
    this.#onText?.()
  }

  whenPrinted(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const settle = (then: () => void): void => {
        clearTimeout(timer)
        this.#onText = undefined
        then()
      }
      const timer = setTimeout(
        () => settle(() => reject(new Error(`Not ready within ${READY_TIMEOUT_MS} ms: ${this.#text}`))),
        READY_TIMEOUT_MS,
      )
      this.#onText = () => {
        const match = pattern.exec(this.#text)
        if (match !== null) settle(() => resolve(match))
      }
      this.#onText()
      void this.exited.then(() => settle(() => reject(new Error(`The server ended: ${this.#text}`))))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), this.#closeTimeoutMs)
    await this.exited
    clearTimeout(timer)
  }
}

/** A port that was free a moment ago, for servers that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('No port was given')
  return address.port
}
