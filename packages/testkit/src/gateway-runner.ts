// Starts the product's own gateway from the command line, for tests and judges that stand in front of it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Launch, type RunningServer, startServer } from './runners.ts'

/** An entry of `mcpServers`. */
export type ServerEntry =
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string }

export interface GatewayOptions {
  readonly servers: Readonly<Record<string, ServerEntry>>
  /** Serve this one alone, without renaming. */
  readonly transparent?: string
  /** Further arguments of `convoke serve`. */
  readonly args?: readonly string[]
}

/** It lets calls in flight finish, and ends servers that have to be told twice. */
const CLOSE_TIMEOUT_MS = 15_000
const root = fileURLToPath(new URL('../../../', import.meta.url))

/** A launch description as an entry of a configuration file. */
export function entryOf({ command, args, env }: Launch): ServerEntry {
  return { command, args, ...(env === undefined ? {} : { env }) }
}

/**
 * Runs `convoke serve` from the sources on a free port, with a configuration, state and cache of its own.
 * @throws {Error} with its output, if it does not print its address within 30 s.
 */
export async function startGateway(options: GatewayOptions): Promise<RunningServer> {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-gateway-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const config = join(folder, 'convoke.json')
    await writeFile(config, JSON.stringify({ mcpServers: options.servers }), { mode: 0o600 })
    const transparent = options.transparent === undefined ? [] : ['--transparent', options.transparent]
    const server = await startServer(
      [
        '--conditions=@convoke/source',
        join(root, 'packages/cli/src/main.ts'),
        ...['serve', '--config', config, '--http', '127.0.0.1:0', '--data-dir', join(folder, 'data')],
        ...transparent,
        ...(options.args ?? []),
      ],
      {
        closeTimeoutMs: CLOSE_TIMEOUT_MS,
        ready: /http:\/\/127\.0\.0\.1:([1-9]\d*)\/mcp/,
        env: { XDG_CONFIG_HOME: folder },
      },
    )
    return withEnd(server, remove)
  } catch (error) {
    await remove()
    throw error
  }
}

/** The same server, with something more to do at its end. */
function withEnd(server: RunningServer, then: () => Promise<void>): RunningServer {
  return {
    url: server.url,
    pid: server.pid,
    exited: server.exited,
    get stderrTail() {
      return server.stderrTail
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await then()
    },
  }
}
