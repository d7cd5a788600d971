// The reference model's half of the configuration: what the host was told to have, in the few words that a simulation needs.
import { defineServer, type ServerDefinition } from '@convoke/host'

/** One server as a simulation wants it. */
export interface WantedServer {
  readonly name: string
  readonly transport: 'stdio' | 'http'
  /** Which of the programs behind the name: another one is another connection. */
  readonly variant: number
  readonly enabled: boolean
  readonly required: boolean
  readonly eager: boolean
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly approvalMode: ServerDefinition['approvalMode']
  /** Its bearer token comes from the variable `TOKEN`. */
  readonly usesToken: boolean
}

/** Limits that are short enough to be reached in a simulation, in ms. */
export const STARTUP_TIMEOUT_MS = 4_000
export const TOOL_TIMEOUT_MS = 5_000
export const TOOL_TOTAL_TIMEOUT_MS = 15_000
const MESSAGE_BYTES_MAX = 32 * 1024

/** Where the account of the host may be shown. */
export const HOSTED_ORIGIN = 'http://h2.sim'
const HOSTED_NAME = 'h2'

/** Every name there can be. */
export const NAMES: readonly string[] = ['s0', 's1', 's2', 's3', 'h0', 'h1', 'h2']

export function wantedServer(name: string): WantedServer {
  return {
    name,
    transport: name.startsWith('h') ? 'http' : 'stdio',
    variant: 0,
    enabled: true,
    required: false,
    eager: true,
    approvalMode: 'auto',
    usesToken: false,
  }
}

/** The program behind it, as the world calls it. */
export function programKey({ name, transport, variant }: WantedServer): string {
  return transport === 'stdio' ? `sim-${name}/v${variant}` : `${name}.sim/v${variant}`
}

/** Does the configuration let this tool through? */
export function allows({ allow, deny }: WantedServer, tool: string): boolean {
  return (allow === undefined || allow.includes(tool)) && deny?.includes(tool) !== true
}

const made = new WeakMap<ServerDefinition, WantedServer>()

/** What a definition was made from. */
export function wantedOf(definition: ServerDefinition): WantedServer {
  const wanted = made.get(definition)
  if (wanted === undefined) throw new Error(`nobody wanted "${definition.name}"`)
  return wanted
}

/** As the host takes it. */
export function definitionOf(wanted: WantedServer): ServerDefinition {
  const definition = definitionFor(wanted)
  made.set(definition, wanted)
  return definition
}

function definitionFor(wanted: WantedServer): ServerDefinition {
  const { name, variant, allow, deny, usesToken } = wanted
  const transport: ServerDefinition['transport'] =
    wanted.transport === 'stdio'
      ? { kind: 'stdio', command: `sim-${name}`, args: [`v${variant}`], env: {}, envVars: usesToken ? ['TOKEN'] : [] }
      : {
          kind: 'http',
          url: `http://${name}.sim/v${variant}`,
          headers: {},
          envHeaders: {},
          ...(usesToken ? { bearerTokenEnvVar: 'TOKEN' } : {}),
        }
  return defineServer({
    name,
    transport,
    ...(name === HOSTED_NAME ? { hosted: true, auth: 'account' } : {}),
    enabled: wanted.enabled,
    required: wanted.required,
    startup: wanted.eager || wanted.required ? 'eager' : 'lazy-when-cached',
    approvalMode: wanted.approvalMode,
    startupTimeoutMs: STARTUP_TIMEOUT_MS,
    toolTimeoutMs: TOOL_TIMEOUT_MS,
    toolTotalTimeoutMs: TOOL_TOTAL_TIMEOUT_MS,
    messageBytesMax: MESSAGE_BYTES_MAX,
    tools: {
      ...(allow === undefined ? {} : { allow }),
      ...(deny === undefined ? {} : { deny }),
      overrides: { idem: { idempotent: true } },
    },
  })
}
