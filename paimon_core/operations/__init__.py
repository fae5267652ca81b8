"""Operations on tables: compaction, history, changes of rows, partitions; plans of tasks, committed once."""
