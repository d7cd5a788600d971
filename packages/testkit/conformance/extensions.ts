// The ways to sign in that the suite knows and no frozen set demands: extensions of the protocol, and what the first revision with sign-ins said.
import { REVISIONS, type ScenarioRun } from './suite.ts'

/** Extensions have no revision of their own; they are judged on the wire of each. */
const EXTENSIONS = [
  'auth/client-credentials-jwt',
  'auth/client-credentials-basic',
  'auth/enterprise-managed-authorization',
  'auth/dpop',
  'auth/dpop-nonce',
  'auth/wif-jwt-bearer',
] as const

/** Servers without protected-resource metadata, as they were before 2025-06-18. */
const BEFORE_METADATA = [
  'auth/2025-03-26-oauth-metadata-backcompat',
  'auth/2025-03-26-oauth-endpoint-fallback',
] as const

/** All `auth/` scenarios for clients that are in neither required set, each in every revision that it can be run in. */
export const EXTENSION_RUNS: readonly ScenarioRun[] = [
  ...REVISIONS.flatMap((revision) => EXTENSIONS.map((scenario) => ({ scenario, revision, isExtension: true }))),
  ...BEFORE_METADATA.map((scenario) => ({ scenario, revision: '2025-03-26', isExtension: false }) as const),
]
