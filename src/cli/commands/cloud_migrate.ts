// berth cloud migrate

import { DATABASE } from '../../settings/cloud_limits.ts';
import { loadSettings } from '../../settings/config.ts';
import { readDatabaseUrl } from '../../settings/database_url.ts';
import { defineCommand } from '../kit/command.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';

export const cloudMigrateCommand = defineCommand({
  about:
    'Makes the schema in the database of cloud.database_url, or brings it to the format of this version. ' +
    'Berths of the version before run on beside it. Several at the same time do it once.',
  examples: [
    ['BERTH_DATABASE_URL=postgresql://berth@localhost/berth berth cloud migrate', 'before a new version'],
  ],
  run: async ({ globalOptions, out }) => {
    const settings = await loadSettings(globalOptions.config, process.env);
    const url = settings.cloud.database_url;
    if (url === '') throw new UsageError('cloud.database_url is not set', 'Set it, or BERTH_DATABASE_URL.');
    const { DatabaseConnection, DatabaseError } = await import('../../adapters/postgres/connection.ts');
    const { checkServer } = await import('../../adapters/postgres/check_server.ts');
    const { migrate } = await import('../../adapters/postgres/migrate.ts');
    const address = readDatabaseUrl(url);
    const connection = new DatabaseConnection(address, {
      purpose: 'migrate',
      deadlineMs: DATABASE.migrationTimeoutMs,
    });
    try {
      await checkServer(address, connection);
      const { from, to } = await migrate(connection, false);
      const text = from === to ? `the schema has format ${to} already` : `the schema has format ${to} now`;
      out.record({ from, to }, () => text);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      throw new CommandError(`the database ${address.label}: ${error.message}`, 'Nothing was changed.');
    } finally {
      connection.close();
    }
  },
});
