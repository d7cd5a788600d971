/**
 * What one configured server is, after every default has been filled in. These values are facts: nothing here starts,
 * resolves or reads anything, and no secret of the environment is in them unless the file's `${VAR}` put it there.
 */

/** Where a definition came from. Later layers of one load replace earlier ones by server name; none of them merge inside. */
export type ConfigLayer = 'managed' | 'user' | 'project' | 'flag' | 'host' | 'sample'

/** The place of a definition: its layer and, for a file, where its name stands. */
export interface DefinitionSource {
  readonly layer: ConfigLayer
  /** Absolute path of the file; absent for definitions made in code. */
  readonly file?: string
  /** Line of the server's name in the file, from 1. */
  readonly line?: number
  /** Column of the server's name in the file, in UTF-16 code units, from 1. */
  readonly column?: number
}

/** One thing that is wrong with the configuration. Its text never holds a value from the file or the environment. */
export interface ConfigProblem {
  /** `error`: the server (or the file) is not used. `warning`: it is used, the noted part is not. */
  readonly severity: 'error' | 'warning'
  /** Stable, SCREAMING_SNAKE; a row in `docs/errors.md`. */
  readonly code: ConfigProblemCode
  /** For a person; names the file, line, column, server and field. */
  readonly message: string
  readonly file: string
  /** From 1; 0 where the problem has no place in the file (it could not be read). */
  readonly line: number
  /** From 1; 0 where the problem has no place in the file. */
  readonly column: number
  /** The server's name, if the problem belongs to one. */
  readonly server?: string
  /** Dotted path inside the server's entry (`env.TOKEN`, `args.2`). */
  readonly field?: string
}

/** Every code a {@link ConfigProblem} can have. */
export const CONFIG_PROBLEM_CODES = [
  'CONFIG_FILE_UNREADABLE',
  'CONFIG_FILE_NOT_FOUND',
  'CONFIG_FILE_TOO_LARGE',
  'CONFIG_FILE_NOT_REGULAR',
  'CONFIG_FILE_PERMISSIONS',
  'CONFIG_FILE_ENCODING',
  'CONFIG_SYNTAX',
  'CONFIG_SHAPE',
  'CONFIG_KEY_UNKNOWN',
  'CONFIG_KEY_DUPLICATE',
  'CONFIG_SERVERS_TOO_MANY',
  'CONFIG_NAME_INVALID',
  'CONFIG_NAME_LOOKALIKE',
  'CONFIG_TRANSPORT_MISSING',
  'CONFIG_TRANSPORT_AMBIGUOUS',
  'CONFIG_FIELD_TYPE',
  'CONFIG_FIELD_VALUE',
  'CONFIG_FIELD_MISPLACED',
  'CONFIG_FIELD_REFUSED',
  'CONFIG_FIELD_CONFLICT',
  'CONFIG_EXPANSION_MISPLACED',
  'CONFIG_EXPANSION_SYNTAX',
  'CONFIG_VARIABLE_MISSING',
  'CONFIG_INPUT_NEEDED',
  'CONFIG_PROBLEMS_TOO_MANY',
] as const

/** One of {@link CONFIG_PROBLEM_CODES}. */
export type ConfigProblemCode = (typeof CONFIG_PROBLEM_CODES)[number]

/** A server that is a process on this machine (or in its `environment`), spoken to over stdin and stdout. */
export interface StdioTransport {
  readonly kind: 'stdio'
  /** A program's name or path; never a shell line. A leading `~/` is already replaced. */
  readonly command: string
  readonly args: readonly string[]
  /** Literal values; they win over what is inherited. */
  readonly env: Readonly<Record<string, string>>
  /** Names read from the host's environment when the server starts, on top of the fixed allow-list. */
  readonly envVars: readonly string[]
  /** Absolute, or relative to the host's working directory. Absent: the host's working directory. */
  readonly cwd?: string
}

/** A server reached over HTTP. */
export interface HttpTransport {
  readonly kind: 'http'
  /** Absolute `http:` or `https:` URL without user name and password. */
  readonly url: string
  /** Literal headers. */
  readonly headers: Readonly<Record<string, string>>
  /** Header name to the variable that holds its value; read at every start; a missing or blank variable skips the header. */
  readonly envHeaders: Readonly<Record<string, string>>
  /** Variable that holds a bearer token; read at every start; a missing or blank one keeps the server from starting. */
  readonly bearerTokenEnvVar?: string
  /** A program that prints a JSON object of headers. Its output is never logged. */
  readonly headersHelper?: { readonly command: string; readonly args: readonly string[] }
  /** Path of a PEM file with the certificate authorities to trust for this server, in place of the built-in ones. */
  readonly ca?: string
  /** `auto` tries Streamable HTTP first and falls back to HTTP+SSE as the specification says. Absent means `auto`. */
  readonly transport?: 'streamable' | 'sse' | 'auto'
}

/** When a tool needs a person's consent, in agents that ask. */
export type ApprovalMode = 'auto' | 'writes' | 'prompt' | 'approve'

/** Where a server's tools are not shown. */
export type ToolSurface = 'model' | 'gateway' | 'command'

/** What the configuration says about one tool, keyed by its raw name. */
export interface ToolOverride {
  /** Beats the server's `approvalMode`. */
  readonly approvalMode?: ApprovalMode
  /** The call may be sent again after its answer was lost. Only this switch allows it, never a hint of the server. */
  readonly idempotent?: boolean
  /** Longest result handed to a model, in tokens; at least 1. */
  readonly outputTokensMax?: number
  /** Replaces the server's `toolTimeoutMs` for this tool, in milliseconds. */
  readonly toolTimeoutMs?: number
  /** Replaces the server's `toolTotalTimeoutMs` for this tool, in milliseconds. */
  readonly toolTotalTimeoutMs?: number
}

/** Which tools of a server are registered, by raw name. `deny` is applied after `allow`. */
export interface ToolPolicy {
  /** When present, only these are registered. */
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly overrides?: Readonly<Record<string, ToolOverride>>
}

/** Settings of the sign-in, for HTTP servers. */
export interface OauthSettings {
  readonly clientId?: string
  /** The variable that holds the client secret; a secret never stands in the file. */
  readonly clientSecretEnvVar?: string
  /** Redirect URI in place of the loopback one. */
  readonly callbackUrl?: string
  /** Port of the loopback redirect, 1 to 65535. Absent: a free one. */
  readonly callbackPort?: number
  /** The only issuer that may hand out tokens for this server. */
  readonly issuer?: string
  /** `resource` of RFC 8707. Absent: the one that the server's metadata names. */
  readonly resource?: string
  /**
   * How tokens are had: `authorization-code`, a person signs in; `client-credentials` (RFC 6749 4.4), `workload` (RFC 7523) and, from host code only,
   * `enterprise` (SEP-990), nobody does, and `clientId` and `issuer` are known beforehand. Default `authorization-code`.
   */
  readonly grant?: 'authorization-code' | 'client-credentials' | 'workload' | 'enterprise'
  /** Absolute path of a PEM file with the key of `private_key_jwt`, in place of a secret. */
  readonly privateKeyFile?: string
  /** Absolute path of the file with the token that the platform gives this program; read anew for each token. */
  readonly assertionFile?: string
  /** Bind tokens to a key (RFC 9449): where the server asks for it, or wherever the authorization server can. Default `auto`. */
  readonly dpop?: 'auto' | 'always'
}

/** The plugin that a server came with. Set by host code and by plugins, never by an entry. */
export interface DefinitionPlugin {
  readonly id: string
  /** For people; may be the id. */
  readonly displayName: string
  /** Absolute path of the bundle. Part of what makes two connections the same: the same entry from another root is another server. */
  readonly root?: string
  /** A person chose the plugin for this thread. Its servers start eagerly, and no grace period leaves them out. */
  readonly isSelected: boolean
}

/** One configured server. Every default is filled in; optional fields really are absent. */
export interface ServerDefinition {
  /** The key of the entry: any printable text of 1 to 128 characters. */
  readonly name: string
  readonly source: DefinitionSource
  readonly transport: StdioTransport | HttpTransport
  /** `false`: listed as disabled, never started. Default true. */
  readonly enabled: boolean
  /** The host's user wants to fail when this server does. Default false. Starts eagerly. */
  readonly required: boolean
  /** Default `lazy-when-cached`: a server whose catalog is known starts at its first call. */
  readonly startup: 'eager' | 'lazy-when-cached'
  /** The one budget for the whole start, in milliseconds. Default 30 000. */
  readonly startupTimeoutMs: number
  /** In place of `startupTimeoutMs` while a package runner may be installing, in milliseconds. Default 300 000. */
  readonly installTimeoutMs: number
  /** Longest silence of a call, reset by its progress, in milliseconds. Default 300 000. */
  readonly toolTimeoutMs: number
  /** Longest call in all, in milliseconds. Default 3 600 000. */
  readonly toolTotalTimeoutMs: number
  /** Longest single message from the server, in bytes. Default 67 108 864 (64 MiB). */
  readonly messageBytesMax: number
  readonly tools: ToolPolicy
  /** The server's default for tools without an override. Default `auto`. */
  readonly approvalMode: ApprovalMode
  /** Every tool of the server may run beside others. Default false. */
  readonly parallelToolCalls: boolean
  /** Surfaces that do not show this server's tools. Default none. */
  readonly omitToolsFrom: readonly ToolSurface[]
  /** Where the process runs. Default `local`, the only one so far. */
  readonly environment: string
  /** Whose token an HTTP server sees. Default `oauth` for HTTP, `none` for stdio. */
  readonly auth: 'oauth' | 'account' | 'none'
  readonly oauth?: OauthSettings
  /** Scopes to ask for at sign-in. Absent: what the server's metadata says. */
  readonly scopes?: readonly string[]
  /** `session`: each downstream session of the gateway gets an upstream of its own. Default `shared`. */
  readonly isolation: 'shared' | 'session'
  /** Believe the server's own `readOnlyHint` and kin. Default false. */
  readonly trustAnnotations: boolean
  /**
   * A server of the account of the host: its tools may name connectors, its listing may be longer, and with `auth: 'account'` it may see the account's token.
   * From host code, the managed and the user layer only. Default false.
   */
  readonly hosted: boolean
  /** Absent: the server belongs to no plugin. */
  readonly plugin?: DefinitionPlugin
  /** The entry cannot be used; the server is shown as disabled, failed or needing input with this reason, and never started. */
  readonly problem?: ConfigProblem
}

/** The names of the limits that every server has. */
export type ServerLimits = Pick<
  ServerDefinition,
  'startupTimeoutMs' | 'installTimeoutMs' | 'toolTimeoutMs' | 'toolTotalTimeoutMs' | 'messageBytesMax'
>

/** Defaults of {@link ServerDefinition}, where they are numbers. */
export const SERVER_DEFAULTS: ServerLimits = {
  startupTimeoutMs: 30_000,
  installTimeoutMs: 300_000,
  toolTimeoutMs: 300_000,
  toolTotalTimeoutMs: 3_600_000,
  messageBytesMax: 64 * 1024 * 1024,
}

/** What {@link defineServer} needs to know; everything else has a default. */
export type ServerDefinitionInput = Pick<ServerDefinition, 'name' | 'transport'> & Partial<ServerDefinition>

/**
 * Makes a definition in code, with every default filled in.
 *
 * @example
 * const files = defineServer({
 *   name: 'files',
 *   transport: { kind: 'stdio', command: 'files-server', args: ['/srv'], env: {}, envVars: [] },
 * })
 */
export function defineServer(input: ServerDefinitionInput): ServerDefinition {
  return {
    source: { layer: 'host' },
    enabled: true,
    required: false,
    startup: input.required ? 'eager' : 'lazy-when-cached',
    ...SERVER_DEFAULTS,
    tools: {},
    approvalMode: 'auto',
    parallelToolCalls: false,
    omitToolsFrom: [],
    environment: 'local',
    auth: input.transport.kind === 'http' ? 'oauth' : 'none',
    isolation: 'shared',
    trustAnnotations: false,
    hosted: false,
    ...input,
  }
}
