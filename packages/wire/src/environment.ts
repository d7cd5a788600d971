// What a child process gets to see of its host's environment: a short list, what its definition names, what it spells out. Nothing else.

const UNIX_NAMES: readonly string[] = [
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'USER',
  'LANG',
  'LC_ALL',
  'TERM',
  'TMPDIR',
  'TZ',
  '__CF_USER_TEXT_ENCODING',
]

const WINDOWS_NAMES: readonly string[] = [
  'ALLUSERSPROFILE',
  'APPDATA',
  'COMMONPROGRAMFILES',
  'COMMONPROGRAMFILES(X86)',
  'COMMONPROGRAMW6432',
  'COMPUTERNAME',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'NUMBER_OF_PROCESSORS',
  'OS',
  'PATH',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'PROGRAMFILES(X86)',
  'PROGRAMW6432',
  'PUBLIC',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERDOMAIN',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
]

/** What a child is given besides the platform's short list. */
export interface EnvironmentSpec {
  /** Literal values; they win. */
  env?: Readonly<Record<string, string>>
  /** Names read from the host, on top of the platform's list. */
  inheritEnv?: readonly string[]
}

/** The whole environment of a child. Names are compared without regard to case on Windows, as that system does. */
export function childEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  os: string,
  { env = {}, inheritEnv = [] }: EnvironmentSpec,
): Record<string, string> {
  return os === 'win32' ? windowsEnvironment(host, env, inheritEnv) : unixEnvironment(host, env, inheritEnv)
}

function unixEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  env: Readonly<Record<string, string>>,
  inheritEnv: readonly string[],
): Record<string, string> {
  const child: Record<string, string> = Object.create(null) as Record<string, string>
  for (const name of [...UNIX_NAMES, ...inheritEnv]) {
    const value = host[name]
    if (typeof value === 'string') child[name] = value
  }
  return Object.assign(child, env)
}

function windowsEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  env: Readonly<Record<string, string>>,
  inheritEnv: readonly string[],
): Record<string, string> {
  const wanted = new Set([...WINDOWS_NAMES, ...inheritEnv].map((name) => name.toUpperCase()))
  const found = new Map<string, [string, string]>()
  for (const [name, value] of Object.entries(host))
    if (value !== undefined && wanted.has(name.toUpperCase())) found.set(name.toUpperCase(), [name, value])
  for (const [name, value] of Object.entries(env)) found.set(name.toUpperCase(), [name, value])
  return Object.fromEntries(found.values())
}
