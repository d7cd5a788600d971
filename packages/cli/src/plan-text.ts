// What a plan says about a server, in words. Pure.
import type { PlannedServer, ServerDefinition } from '@convoke/host'

/** Why a server that nobody ran before is started. */
function whyStarted(definition: ServerDefinition | undefined): string {
  if (definition?.required === true) return 'it is required'
  if (definition?.startup === 'eager') return '"startup" is "eager"'
  return 'its tools are not known yet'
}

const WORDS: Readonly<Record<Exclude<PlannedServer['because'], 'no-previous'>, string>> = {
  unchanged: 'stays connected',
  starting: 'its start goes on',
  'store-contended': 'its sign-in was refused, and nobody can read whether it has changed',
  'config-changed': 'its connection is made of other settings',
  'credentials-changed': 'its sign-in has changed',
  'limits-changed': 'its limits have changed',
  'reconnect-asked': 'somebody asked for it',
  'not-healthy': 'it has failed before',
  'wanted-now': 'it may not sleep any longer',
  cached: 'its tools are known; it starts when it is needed',
  'on-demand': 'it starts when it is named',
  disabled: 'its entry has "enabled": false',
  'config-problem': 'its entry cannot be used',
  removed: 'it is not in the new configuration',
}

/** The reason, and the fields that changed. */
export function planReason(
  { action, because, changed }: PlannedServer,
  definition: ServerDefinition | undefined,
): string {
  const why = because === 'no-previous' ? whyStarted(definition) : WORDS[because]
  if (changed.length === 0) return why
  const fields = changed.join(', ')
  return action === 'reuse' ? `${why}; changed without a new start: ${fields}` : `${why}; changed: ${fields}`
}
