/**
 * The one definition of a server's entry: every field with its type, unit, default and meaning. The reader checks entries
 * against it, the published JSON Schema and the field list of the documentation are generated from it. It is plain data
 * because it is on the path of every `convoke call`: a schema library costs more than the rest of the start.
 */

/** What happens to `${VAR}` and a leading `~` in a text. `none`: a `${` is an error that names the field. */
export type Expansion = 'none' | 'home' | 'variables' | 'variables-and-home' | 'url'

interface SpecCommon {
  /** One sentence for the schema and the documentation. */
  readonly about: string
  /** Present: the field belongs to this transport and is an error beside the other. */
  readonly transport?: 'stdio' | 'http'
  /** The default as it would stand in the file; for reading and documentation. */
  readonly default?: unknown
}

/** A text. Blank texts are errors unless `blank` is `allowed`. */
export interface TextSpec extends SpecCommon {
  readonly kind: 'text'
  readonly expands: Expansion
  readonly blank?: 'allowed'
}
/** `true` or `false`. */
export interface FlagSpec extends SpecCommon {
  readonly kind: 'flag'
}
/** A whole number within limits; the unit is the end of the field's name. */
export interface IntegerSpec extends SpecCommon {
  readonly kind: 'integer'
  readonly min: number
  readonly max: number
}
/** One of a few words. */
export interface ChoiceSpec extends SpecCommon {
  readonly kind: 'choice'
  readonly values: readonly string[]
}
/** A list of texts; `values` limits them to a few words. */
export interface TextListSpec extends SpecCommon {
  readonly kind: 'text-list'
  readonly expands: Expansion
  readonly values?: readonly string[]
  readonly blank?: 'allowed'
}
/** A list of variable names, each a text or `{ name, source }`. */
export interface VariableListSpec extends SpecCommon {
  readonly kind: 'variable-list'
}
/** An object whose values are texts. */
export interface TextMapSpec extends SpecCommon {
  readonly kind: 'text-map'
  readonly expands: Expansion
  readonly keys: 'variable' | 'header'
  readonly values: 'text' | 'variable'
}
/** An object with known fields. */
export interface ObjectSpec extends SpecCommon {
  readonly kind: 'object'
  readonly fields: Readonly<Record<string, FieldSpec>>
  readonly required?: readonly string[]
}
/** An object with free keys and values of one shape. */
export interface ObjectMapSpec extends SpecCommon {
  readonly kind: 'object-map'
  readonly fields: Readonly<Record<string, FieldSpec>>
}
/** Any field. */
export type FieldSpec =
  | TextSpec
  | FlagSpec
  | IntegerSpec
  | ChoiceSpec
  | TextListSpec
  | VariableListSpec
  | TextMapSpec
  | ObjectSpec
  | ObjectMapSpec

/** One day in milliseconds: the longest time limit that can be configured. */
export const LIMIT_MS_MAX = 86_400_000

const milliseconds = (about: string, defaultMs?: number): IntegerSpec => ({
  kind: 'integer',
  min: 1,
  max: LIMIT_MS_MAX,
  about,
  ...(defaultMs === undefined ? {} : { default: defaultMs }),
})
const flag = (about: string, value: boolean): FlagSpec => ({ kind: 'flag', default: value, about })
const choice = (values: readonly string[], about: string, value?: string): ChoiceSpec => ({
  kind: 'choice',
  values,
  about,
  ...(value === undefined ? {} : { default: value }),
})
const names = (about: string): TextListSpec => ({ kind: 'text-list', expands: 'none', about })

const approvalModes = ['auto', 'writes', 'prompt', 'approve']

const stdioFields: Readonly<Record<string, FieldSpec>> = {
  command: {
    kind: 'text',
    expands: 'home',
    transport: 'stdio',
    about:
      'The program to start: a name found on PATH, or a path. Never a shell line. Its presence makes this a stdio server.',
  },
  args: {
    kind: 'text-list',
    expands: 'variables-and-home',
    blank: 'allowed',
    transport: 'stdio',
    default: [],
    about: 'Arguments of the program, one text each.',
  },
  env: {
    kind: 'text-map',
    expands: 'variables-and-home',
    keys: 'variable',
    values: 'text',
    transport: 'stdio',
    default: {},
    about: 'Environment variables of the process, by name. They win over inherited ones.',
  },
  envVars: {
    kind: 'variable-list',
    transport: 'stdio',
    default: [],
    about: 'Names of variables that the process gets from the environment of Convoke, on top of a short fixed list.',
  },
  cwd: {
    kind: 'text',
    expands: 'variables-and-home',
    transport: 'stdio',
    about: 'Working directory of the process. A relative path starts at the folder of the configuration file.',
  },
}

const httpFields: Readonly<Record<string, FieldSpec>> = {
  url: {
    kind: 'text',
    expands: 'url',
    transport: 'http',
    about:
      'Address of the server, http or https. Its presence makes this an HTTP server. Variables only in path and query.',
  },
  transport: {
    ...choice(
      ['auto', 'streamable', 'sse'],
      'How to speak over HTTP. auto tries Streamable HTTP first and falls back to the older HTTP+SSE.',
      'auto',
    ),
    transport: 'http',
  },
  headers: {
    kind: 'text-map',
    expands: 'variables',
    keys: 'header',
    values: 'text',
    transport: 'http',
    default: {},
    about: 'Headers of every request, by name.',
  },
  envHeaders: {
    kind: 'text-map',
    expands: 'none',
    keys: 'header',
    values: 'variable',
    transport: 'http',
    default: {},
    about:
      'Headers whose value is read from a variable at every start: header name to variable name. Wins over headers.',
  },
  bearerTokenEnvVar: {
    kind: 'text',
    expands: 'none',
    transport: 'http',
    about: 'Name of the variable that holds a bearer token. It is read at every start.',
  },
  headersHelper: {
    kind: 'object',
    transport: 'http',
    required: ['command'],
    fields: {
      command: { kind: 'text', expands: 'home', about: 'The program to start; never a shell line.' },
      args: {
        kind: 'text-list',
        expands: 'variables-and-home',
        blank: 'allowed',
        default: [],
        about: 'Arguments of the program, one text each.',
      },
    },
    about: 'A program that prints a JSON object of headers, run before the server is reached.',
  },
  ca: {
    kind: 'text',
    expands: 'variables-and-home',
    transport: 'http',
    about:
      'PEM file of the certificate authorities to trust for this server. A relative path starts at the folder of the configuration file.',
  },
  auth: {
    ...choice(
      ['oauth', 'account', 'none'],
      'Whose token the server sees: one from signing in to it, the one of the account of the host, or none.',
      'oauth',
    ),
    transport: 'http',
  },
  oauth: {
    kind: 'object',
    transport: 'http',
    fields: {
      clientId: { kind: 'text', expands: 'none', about: 'Client identifier, if the server does not register clients.' },
      clientSecretEnvVar: {
        kind: 'text',
        expands: 'none',
        about: 'Name of the variable that holds the client secret. The secret itself never stands in the file.',
      },
      callbackUrl: { kind: 'text', expands: 'none', about: 'Redirect address in place of the loopback one.' },
      callbackPort: {
        kind: 'integer',
        min: 1,
        max: 65_535,
        about: 'Port of the loopback redirect. Without it a free one.',
      },
      issuer: {
        kind: 'text',
        expands: 'none',
        about: 'The only authorization server that may issue tokens for this server.',
      },
      resource: {
        kind: 'text',
        expands: 'none',
        about: 'The resource (RFC 8707) to ask a token for. Without it the one that the server names.',
      },
      grant: choice(
        ['authorization-code', 'client-credentials', 'workload'],
        'How tokens are had: a person signs in; or nobody does, and this program shows its own credentials (clientSecretEnvVar or privateKeyFile) or those that its platform gives it (assertionFile). Without a person, clientId and issuer must be given.',
        'authorization-code',
      ),
      privateKeyFile: {
        kind: 'text',
        expands: 'variables-and-home',
        about:
          'PEM file (PKCS #8) of the key that this program signs with in place of a client secret (private_key_jwt). A relative path starts at the folder of the configuration file.',
      },
      assertionFile: {
        kind: 'text',
        expands: 'variables-and-home',
        about:
          'File with the token that the platform gives this program (workload identity); read anew for each token. A relative path starts at the folder of the configuration file.',
      },
      dpop: choice(
        ['auto', 'always'],
        'Whether tokens are bound to a key of this program (RFC 9449): where the server asks for it, or wherever the authorization server can.',
        'auto',
      ),
    },
    about: 'Settings of the sign-in.',
  },
}

const toolFields: Readonly<Record<string, FieldSpec>> = {
  allow: names('Names of the tools to offer, as the server calls them. Without it all of them.'),
  deny: names('Names of tools to leave out; applied after allow.'),
  overrides: {
    kind: 'object-map',
    fields: {
      approvalMode: choice(approvalModes, 'In place of the approvalMode of the server.'),
      idempotent: flag(
        'The call may be sent again when its answer was lost. A hint of the server never allows it.',
        false,
      ),
      outputTokensMax: {
        kind: 'integer',
        min: 1,
        max: 100_000_000,
        about: 'Longest result handed to a model, in tokens.',
      },
      toolTimeoutMs: milliseconds('In place of the toolTimeoutMs of the server, in milliseconds.'),
      toolTotalTimeoutMs: milliseconds('In place of the toolTotalTimeoutMs of the server, in milliseconds.'),
    },
    about: 'Settings of single tools, by the name the server gives them.',
  },
}

const sharedFields: Readonly<Record<string, FieldSpec>> = {
  enabled: flag('false: the server is listed and never started.', true),
  required: flag('The host fails when this server does. It starts at once, not at its first use.', false),
  startup: choice(
    ['lazy-when-cached', 'eager'],
    'eager starts with the host. lazy-when-cached starts at the first use when its tools are known from before.',
    'lazy-when-cached',
  ),
  startupTimeoutMs: milliseconds(
    'Longest start in milliseconds: process, connection, handshake and first listing together.',
    30_000,
  ),
  installTimeoutMs: milliseconds(
    'In place of startupTimeoutMs while npx, uvx, bunx or pnpm dlx may be installing, in milliseconds.',
    300_000,
  ),
  toolTimeoutMs: milliseconds('Longest silence of a call in milliseconds; progress starts it anew.', 300_000),
  toolTotalTimeoutMs: milliseconds(
    'Longest call in all, in milliseconds, whatever progress it makes; while a person is asked it stands still.',
    3_600_000,
  ),
  messageBytesMax: {
    kind: 'integer',
    min: 1024,
    max: 1_073_741_824,
    default: 67_108_864,
    about: 'Longest single message from the server, in bytes. A longer one fails its call and nothing else.',
  },
  tools: { kind: 'object', fields: toolFields, default: {}, about: 'Which tools of the server are offered, and how.' },
  approvalMode: choice(
    approvalModes,
    'When an agent asks before a call: for doubtful tools, for all that may write, always, or never.',
    'auto',
  ),
  parallelToolCalls: flag('Calls to this server may run beside each other in an agent.', false),
  omitToolsFrom: {
    kind: 'text-list',
    expands: 'none',
    values: ['model', 'gateway', 'command'],
    default: [],
    about: 'Where the tools of this server are not shown.',
  },
  environment: {
    kind: 'text',
    expands: 'none',
    default: 'local',
    about: 'Where the server runs. local is the only one so far.',
  },
  scopes: names('Scopes to ask for at the sign-in. Without it those that the server names.'),
  isolation: choice(
    ['shared', 'session'],
    'session: each client of the gateway gets a connection of its own to this server.',
    'shared',
  ),
  trustAnnotations: flag(
    "Believe the server's own hints, such as readOnlyHint. Counts only in your own configuration file, not with --config.",
    false,
  ),
  hosted: flag(
    'The server belongs to the account of the host: its tools may name connectors, and up to 8192 of them are listed. Counts only in your own configuration file, not with --config.',
    false,
  ),
}

/** Every field of a server's entry, in the order of the documentation. */
export const SERVER_FIELDS: Readonly<Record<string, FieldSpec>> = { ...stdioFields, ...httpFields, ...sharedFields }

/** A spelling of another client that is understood in place of one of ours. */
export interface AliasSpec {
  readonly about: string
  /** JSON Schema of the accepted values. */
  readonly schema: Readonly<Record<string, unknown>>
}

/** Words other clients use for the transport, with the kind and the HTTP flavour they mean. */
export const TRANSPORT_WORDS: ReadonlyMap<string, { kind: 'stdio' | 'http'; flavour?: 'streamable' | 'sse' }> = new Map(
  [
    ['stdio', { kind: 'stdio' }],
    ['local', { kind: 'stdio' }],
    ['http', { kind: 'http', flavour: 'streamable' }],
    ['streamable-http', { kind: 'http', flavour: 'streamable' }],
    ['streamable_http', { kind: 'http', flavour: 'streamable' }],
    ['streamableHttp', { kind: 'http', flavour: 'streamable' }],
    ['streamableHTTP', { kind: 'http', flavour: 'streamable' }],
    ['sse', { kind: 'http', flavour: 'sse' }],
    ['remote', { kind: 'http' }],
  ],
)

/** Keys of other clients that are read. */
export const ALIASES: Readonly<Record<string, AliasSpec>> = {
  type: {
    about: 'Transport as other clients write it; read as a check, and as transport for HTTP servers.',
    schema: { enum: [...TRANSPORT_WORDS.keys()] },
  },
  disabled: { about: 'The opposite of enabled.', schema: { type: 'boolean' } },
  timeout: {
    about: 'Read as toolTimeoutMs: below 1000 it means seconds, above 3600 milliseconds; between them it is ignored.',
    schema: { type: 'number' },
  },
  httpUrl: { about: 'Read as url with transport streamable.', schema: { type: 'string' } },
  serverUrl: { about: 'Read as url.', schema: { type: 'string' } },
  baseUrl: { about: 'Read as url.', schema: { type: 'string' } },
  includeTools: { about: 'Read as tools.allow.', schema: { type: 'array', items: { type: 'string' } } },
  excludeTools: { about: 'Read as tools.deny.', schema: { type: 'array', items: { type: 'string' } } },
  name: { about: 'Ignored: the key of the entry is the name.', schema: { type: 'string' } },
}

/** Keys of other clients that are refused or not supported, with the way out. The server loads without them. */
export const REFUSED_KEYS: ReadonlyMap<string, string> = new Map([
  ['autoApprove', 'approvals are never taken from a pasted entry; set "approvalMode" or "tools.overrides" yourself'],
  ['alwaysAllow', 'approvals are never taken from a pasted entry; set "approvalMode" or "tools.overrides" yourself'],
  ['trust', 'approvals are never taken from a pasted entry; set "approvalMode" or "tools.overrides" yourself'],
  ['envFile', 'files of variables are not read; name the variables in "envVars" or write them in "env"'],
])

/** Keys that hold a secret in the open. The server is not used while they stand there. */
export const SECRET_KEYS: ReadonlyMap<string, string> = new Map([
  ['bearerToken', 'put the token in an environment variable and name the variable in "bearerTokenEnvVar"'],
  ['bearer_token', 'put the token in an environment variable and name the variable in "bearerTokenEnvVar"'],
  ['clientSecret', 'put the secret in an environment variable and name the variable in "oauth.clientSecretEnvVar"'],
])
