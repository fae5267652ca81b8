"""Format tables: files of other tools in directories, which a catalog lists as tables; they have no snapshots"""
