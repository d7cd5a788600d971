// Definitions for tests, from launches and addresses.
import { defineServer, type ServerDefinition, type ServerDefinitionInput } from '@convoke/host'

/** A server as tests name it. */
export type ServerEntry =
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string }

export function definitionsOf(
  servers: Readonly<Record<string, ServerEntry>>,
  overrides: Readonly<Record<string, Partial<ServerDefinitionInput>>> = {},
): ServerDefinition[] {
  return Object.entries(servers).map(([name, entry]) =>
    defineServer({
      name,
      transport:
        'url' in entry
          ? { kind: 'http', url: entry.url, headers: {}, envHeaders: {} }
          : {
              kind: 'stdio',
              command: entry.command,
              args: [...(entry.args ?? [])],
              env: { ...entry.env },
              envVars: [],
            },
      ...overrides[name],
    }),
  )
}
