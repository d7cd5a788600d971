import type { ServerConnection } from '../connection/index.ts'

/** A start that fails may be followed by another one that somebody needs: settled is when none is under way. Never rejects. */
export async function settled(connection: ServerConnection): Promise<void> {
  while (connection.isStarting) await connection.whenSettled()
}
