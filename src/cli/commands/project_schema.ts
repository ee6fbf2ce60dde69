// berth __schema: the JSON Schema of berth.yaml. The build adds it to the package.
import { projectSchemaText } from '../../project/write_project.ts';
import { defineCommand } from '../kit/command.ts';

export const projectSchemaCommand = defineCommand({
  run: async (context) => {
    context.out.raw(projectSchemaText());
  },
});
