// `convoke serve`: every server as one MCP server, until it is told to end.

import { setFlagsFromString } from 'node:v8'
import {
  createToken,
  type Gateway,
  GatewayError,
  type GatewayHttpOptions,
  type GatewayOptions,
  gatewayHandlers,
  serveGateway,
} from '@convoke/gateway'
import { createHost, type Host, HostError, type LoadedConfig, type ServerDefinition } from '@convoke/host'
import { CommandError, usageError } from '../command-error.ts'
import { isUnusable, placesOf, readConfiguration, requireServers } from '../configuration.ts'
import type { CommandContext } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { followConfiguration } from '../follow-configuration.ts'
import { followSignIns } from '../follow-sign-ins.ts'
import { DEFAULT_PORT, readListenAddress } from '../listen-address.ts'
import { makeSample } from '../sample.ts'
import { Announcer } from '../serve-announcer.ts'
import { signInSettings } from '../sign-in-settings.ts'
import { VERSION } from '../version.ts'
import { commandErrorOf } from './host-errors.ts'

/** What `convoke serve` takes. */
export interface ServeCommandOptions {
  readonly http?: string
  readonly stdio?: boolean
  readonly tokenEnv?: string
  readonly requireToken?: boolean
  readonly allowHost?: readonly string[]
  readonly allowOrigin?: readonly string[]
  readonly transparent?: string
  /** Only there to be refused: the command line of a process can be read by everybody. */
  readonly token?: string
}

/** Time that calls in flight get at the end, in milliseconds. */
const DRAIN_MS = 10_000

/** Serves until a signal comes or, over stdio, until the client has gone. */
export async function runServe(context: CommandContext, options: ServeCommandOptions): Promise<ExitCode> {
  const access = readAccess(context, options)
  // Requests in flight make V8 grow its young generation past the processor's cache; this keeps it small.
  setFlagsFromString('--semi-space-growth-factor=1')
  try {
    await using served = await definitionsFor(context, options)
    await using host = await openServingHost(context, served.definitions, options)
    await using gateway = await openGateway(host, { context, options, access })
    const announcer = new Announcer(context, host, { url: gateway.url, isSample: served.isSample, ...access })
    await announcer.tellEndpoint()
    const hasDataOutput = gateway.url !== undefined
    await using _ = followConfiguration({ ...served, context, host, hasDataOutput })
    await using __ = await followSignIns({ context, host, hasDataOutput })
    await untilEnd(context, gateway, announcer)
    await gateway.close({ drainMs: DRAIN_MS })
    return EXIT.ok
  } catch (error) {
    throw asCommandError(error)
  }
}

interface Access {
  /** The token that clients must send. */
  readonly token: string | undefined
  /** The variable it came from; undefined for one that was made up. */
  readonly tokenVariable: string | undefined
}

function readAccess({ env }: CommandContext, options: ServeCommandOptions): Access {
  const { http, stdio = false, token, tokenEnv, requireToken = false } = options
  if (token !== undefined) {
    throw usageError(
      'A token on the command line can be read by every user of this machine. Put it in a variable: --token-env NAME.',
    )
  }
  if (stdio && (http !== undefined || tokenEnv !== undefined || requireToken)) {
    throw usageError('--stdio has no address and no token; leave out --http, --token-env and --require-token.')
  }
  if (tokenEnv === undefined) return { token: requireToken ? createToken() : undefined, tokenVariable: undefined }
  const value = env[tokenEnv]
  if (value === undefined || value === '') throw usageError(`The variable ${tokenEnv} of --token-env is not set.`)
  return { token: value, tokenVariable: tokenEnv }
}

interface Served extends AsyncDisposable {
  readonly definitions: readonly ServerDefinition[]
  readonly isSample: boolean
  /** Names to serve; empty: all. */
  readonly wanted: readonly string[]
  /** The files of the configuration, there or not. */
  readonly files: LoadedConfig['files']
}

/** The configured servers, or the sample set when there is no configuration at all. */
async function definitionsFor(context: CommandContext, { transparent }: ServeCommandOptions): Promise<Served> {
  const { server } = context.options
  const wanted = transparent === undefined ? server : [transparent]
  const loaded = await readConfiguration(context)
  if (loaded.files.every(({ found }) => !found)) {
    const sample = await makeSample()
    return {
      ...sample,
      isSample: true,
      wanted,
      files: loaded.files,
      definitions: sample.definitions.filter(({ name }) => wanted.length === 0 || wanted.includes(name)),
    }
  }
  requireServers(wanted, loaded)
  const definitions = loaded.definitions.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
  if (isUnusable(loaded))
    throw new CommandError(EXIT.configuration, 'CONFIG_PROBLEM', 'No server of the configuration can be used.')
  if (definitions.length === 0) {
    const files = loaded.files.filter(({ found }) => found).map(({ path }) => path)
    throw new CommandError(
      EXIT.configuration,
      'CONFIG_PROBLEM',
      `There is no server in ${files.join(' or ')}. Add one: convoke add NAME -- COMMAND ARGS`,
    )
  }
  return { definitions, isSample: false, wanted, files: loaded.files, [Symbol.asyncDispose]: async () => {} }
}

/** The host outlives the signal: calls in flight are drained first. */
async function openServingHost(
  context: CommandContext,
  definitions: readonly ServerDefinition[],
  { transparent }: ServeCommandOptions,
): Promise<Host> {
  const places = await placesOf(context)
  const { stateDirectory, cacheDirectory } = places
  return createHost({
    definitions,
    clientInfo: { name: 'convoke', version: VERSION },
    stateDirectory,
    cacheDirectory,
    signIns: signInSettings(context, places),
    handlers: gatewayHandlers,
    writeBurst: 'turn',
    // A server that is passed through is started for each client, with what that client can do.
    start: transparent === undefined ? 'all' : [],
  })
}

interface GatewayFacts {
  readonly context: CommandContext
  readonly options: ServeCommandOptions
  readonly access: Access
}

async function openGateway(host: Host, { context, options, access }: GatewayFacts): Promise<Gateway> {
  const { transparent, stdio = false, allowHost = [], allowOrigin = [] } = options
  const shared: GatewayOptions = {
    serverInfo: { name: 'convoke', title: 'Convoke', version: VERSION },
    ...(transparent === undefined ? {} : { transparent }),
  }
  if (stdio) return serveGateway(host, { ...shared, stdio: true })
  const http: GatewayHttpOptions = {
    ...(options.http === undefined ? { port: DEFAULT_PORT } : readListenAddress(options.http)),
    ...(access.token === undefined ? {} : { token: access.token }),
    allowedHosts: allowHost,
    allowedOrigins: allowOrigin,
  }
  try {
    return await serveGateway(host, { ...shared, http })
  } catch (error) {
    const isBusy = error instanceof GatewayError && error.code === 'GATEWAY_ADDRESS_IN_USE'
    if (!isBusy || options.http !== undefined) throw error
    context.terminal.notice(`Port ${DEFAULT_PORT} is in use; another one is taken. Choose one with --http HOST:PORT.`)
    return serveGateway(host, { ...shared, http: { ...http, port: 0 } })
  }
}

/** Resolves on a signal, or when the only client has gone. */
async function untilEnd({ signal }: CommandContext, gateway: Gateway, announcer: Announcer): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([ended, gateway.closed])
  announcer.tellEnd(gateway.counts.calls)
}

function asCommandError(error: unknown): unknown {
  if (HostError.is(error)) return commandErrorOf(error)
  if (!(error instanceof GatewayError)) return error
  switch (error.code) {
    case 'GATEWAY_TOKEN_REQUIRED':
      return new CommandError(
        EXIT.usage,
        error.code,
        `${error.message}. Pass --token-env NAME, or --require-token to have one made.`,
      )
    case 'GATEWAY_TOKEN_WEAK':
    case 'GATEWAY_SERVER_UNKNOWN':
    case 'GATEWAY_OPTIONS_INVALID':
      return new CommandError(EXIT.usage, error.code, error.message)
    case 'GATEWAY_ADDRESS_IN_USE':
    case 'GATEWAY_ADDRESS_UNAVAILABLE':
      return new CommandError(EXIT.failed, error.code, error.message)
  }
}
