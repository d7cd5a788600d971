// Where configuration, state and cache lie on this machine. Pure.

import { join } from 'node:path'

/** What the places depend on. */
export interface PathFacts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly homeDirectory: string
  /** As `process.platform`. */
  readonly platform: string
  /** Replaces the state and the cache place, as `--data-dir` does. */
  readonly dataDirectory?: string
}

/** The places of one user. */
export interface StandardPaths {
  /** The user's configuration file. */
  readonly configFile: string
  /** Leases, approvals, credentials: what must survive. */
  readonly stateDirectory: string
  /** Catalogs and verdicts: what may be deleted at any time. */
  readonly cacheDirectory: string
}

/**
 * The XDG base directories on Linux and the like, `~/Library` on macOS, `%APPDATA%` on Windows. An XDG variable that is set is
 * followed on every system; one that is not an absolute path is ignored, as the XDG specification says.
 */
export function standardPaths({ env, homeDirectory, platform, dataDirectory }: PathFacts): StandardPaths {
  const [config, state, cache] = defaultRoots({ env, homeDirectory, platform })
  const root = (name: string, fallback: string): string => {
    const value = env[name]
    return value !== undefined && (value.startsWith('/') || /^[A-Za-z]:[\\/]/.test(value)) ? value : fallback
  }
  return {
    configFile: join(root('XDG_CONFIG_HOME', config), 'convoke', 'convoke.json'),
    stateDirectory:
      dataDirectory === undefined ? join(root('XDG_STATE_HOME', state), 'convoke') : join(dataDirectory, 'state'),
    cacheDirectory:
      dataDirectory === undefined ? join(root('XDG_CACHE_HOME', cache), 'convoke') : join(dataDirectory, 'cache'),
  }
}

function defaultRoots({ env, homeDirectory, platform }: PathFacts): readonly [string, string, string] {
  if (platform === 'win32') {
    const local = env['LOCALAPPDATA'] ?? join(homeDirectory, 'AppData', 'Local')
    return [env['APPDATA'] ?? join(homeDirectory, 'AppData', 'Roaming'), join(local, 'State'), join(local, 'Cache')]
  }
  if (platform === 'darwin') {
    const library = join(homeDirectory, 'Library')
    const support = join(library, 'Application Support')
    return [support, support, join(library, 'Caches')]
  }
  return [join(homeDirectory, '.config'), join(homeDirectory, '.local', 'state'), join(homeDirectory, '.cache')]
}
